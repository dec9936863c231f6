use std::path::Path;

use super::*;

fn dir(name: &str) -> PathBuf {
    let dir = std::env::temp_dir().join(format!("lastmile-fleet-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    dir
}

/// A study of that many runs: the squares, with a number that decimal digits round.
fn study(fleet: &Fleet, inputs: u64, runs: usize) -> Result<Option<Vec<(usize, f64)>>> {
    fleet.each("squares", inputs, runs, &Audience::default(), |run| Ok((run * run, run as f64 / 3.0)))
}

fn part(dir: &Path, name: &str, shard: &str, arguments: &[&str]) -> PathBuf {
    let file = dir.join(name);
    let arguments = arguments.iter().map(ToString::to_string).collect();
    let fleet = Fleet::Part(Part { shard: shard.parse().unwrap(), arguments, file: file.clone() });
    assert_eq!(study(&fleet, 1, 10).unwrap(), None, "a shard has no result");
    assert!(!Journal::path(&file).exists());
    file
}

#[test]
fn shards_have_each_run_once() {
    for of in 1..=12 {
        let shards: Vec<Shard> = (1..=of).map(|number| Shard { of, number }).collect();
        assert_eq!(shards.iter().map(|shard| shard.share(10)).sum::<usize>(), 10);
        for run in 0..10 {
            assert_eq!(shards.iter().filter(|shard| shard.has(run)).count(), 1);
        }
    }
    for wrong in ["", "1", "0/4", "5/4", "-1/4", "1/0", "a/b", "1/1000000"] {
        assert!(wrong.parse::<Shard>().unwrap_err().contains("is not I/N"), "{wrong}");
    }
}

#[test]
fn merged_is_what_one_machine_gives() {
    let dir = dir("merged");
    let files: Vec<_> =
        [3, 1, 2].iter().map(|i| part(&dir, &format!("{i}"), &format!("{i}/3"), &["paths"])).collect();
    let shards = Shards::open(&files).unwrap();
    assert_eq!(shards.arguments(), ["paths"]);
    assert_eq!(study(&Fleet::Merged(shards), 1, 10), study(&Fleet::Whole, 1, 10));
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn what_does_not_belong_together_is_refused_by_its_file() {
    let dir = dir("refused");
    let one = part(&dir, "one", "1/2", &["paths"]);
    let two = part(&dir, "two", "2/2", &["paths"]);
    let again = part(&dir, "again", "2/2", &["paths"]);
    let other = part(&dir, "other", "2/2", &["paths", "--runs", "7"]);
    let third = part(&dir, "third", "3/3", &["paths"]);
    let diary = dir.join("diary");
    std::fs::write(&diary, "dear diary\n").unwrap();
    let old = dir.join("old");
    let text = std::fs::read_to_string(&two).unwrap();
    std::fs::write(&old, text.replace(env!("CARGO_PKG_VERSION"), "0.0.1")).unwrap();
    for (files, file, why) in [
        (vec![&one, &two, &again], &again, "it is shard 2/2, as is "),
        (vec![&one, &other], &other, "its arguments are \"paths --runs 7\", and those of "),
        (vec![&one, &third], &third, "it is shard 3/3, and "),
        (vec![&one, &diary], &diary, "it is no shard of a study"),
        (vec![&one, &old], &old, "it was made by lastmile 0.0.1, build "),
        (vec![&two], &two, "is one of 2 shards, and the command names 1"),
        (vec![&one, &dir.join("none")], &dir.join("none"), "No such file"),
    ] {
        let files: Vec<PathBuf> = files.into_iter().cloned().collect();
        let error = Shards::open(&files).unwrap_err().to_string();
        assert!(error.contains(&*file.display().to_string()) && error.contains(why), "{error}");
    }

    // Errors that the first lines do not show.
    let merged = |files: [&PathBuf; 2], inputs| {
        study(&Fleet::Merged(Shards::open(&files.map(Clone::clone)).unwrap()), inputs, 10)
            .unwrap_err()
            .to_string()
    };
    assert!(merged([&one, &two], 2).contains("one: the scenario files have changed"));
    let cut = dir.join("cut");
    std::fs::write(&cut, text.lines().take(4).map(|line| format!("{line}\n")).collect::<String>()).unwrap();
    let error = merged([&one, &cut], 1);
    assert!(error.contains("cut: it has 3 of its 5 runs: run shard 2/2 again"), "{error}");
    std::fs::write(&cut, &text[..text.len() - 9]).unwrap();
    assert!(merged([&one, &cut], 1).contains("cut: a line is damaged"));
    let foreign = std::fs::read_to_string(&one).unwrap().lines().nth(1).unwrap().to_owned() + "\n";
    std::fs::write(&cut, text + &foreign).unwrap();
    assert!(merged([&one, &cut], 1).contains("is none of shard 2/2"));
    std::fs::remove_dir_all(&dir).unwrap();
}

#[test]
fn a_shard_that_was_killed_goes_on() {
    let dir = dir("killed");
    let file = part(&dir, "one", "1/2", &["paths"]);
    let whole = std::fs::read_to_string(&file).unwrap();
    let half: String = whole.lines().take(3).map(|line| format!("{line}\n")).collect();
    std::fs::write(Journal::path(&file), half + "{\"run\":6,\"fou").unwrap();
    part(&dir, "one", "1/2", &["paths"]);
    let sorted = |text: &str| {
        let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
        lines.sort();
        lines
    };
    assert_eq!(sorted(&std::fs::read_to_string(&file).unwrap()), sorted(&whole));
    let refused = |name: &str, inputs: u64| {
        let shard = "1/2".parse().unwrap();
        let part = Part { shard, arguments: vec!["paths".to_owned()], file: dir.join(name) };
        study(&Fleet::Part(part), inputs, 10).unwrap_err().to_string()
    };
    assert!(refused("one", 2).contains("a shard of another study"));
    std::fs::write(dir.join("diary"), "dear diary\n").unwrap();
    assert!(refused("diary", 1).contains("something else than a shard"));
    std::fs::remove_dir_all(&dir).unwrap();
}
