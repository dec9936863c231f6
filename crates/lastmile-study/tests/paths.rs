//! Random paths stay what they are: a few of them, word by word. `LASTMILE_UPDATE_DOCS=1` writes them anew, and with that all tables are
//! of other paths than before.

use std::path::Path;

use lastmile_study::paths::{Feature, Request};

#[test]
fn paths_are_functions_of_their_seeds() {
    let request = Request { runs: 1_000, cells: 1, seed: 1, ..Request::default() };
    for number in [0, 3, 10, 1_000] {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/paths/{number}.toml"));
        let text = request.scenario(number);
        if std::env::var_os("LASTMILE_UPDATE_DOCS").is_some() {
            std::fs::write(&file, &text).unwrap();
        }
        assert_eq!(text, std::fs::read_to_string(&file).unwrap(), "{}", file.display());
    }
}

#[test]
fn features_are_documented() {
    let page = include_str!("../../../docs/paths.md");
    for feature in Feature::ALL {
        let line = format!("| `{}` | {} |\n", feature.name(), feature.what());
        assert!(page.contains(&line), "{line}");
    }
}
