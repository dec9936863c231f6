//! Rate controllers of others as programs: one line of JSON in for each event, one line out with the rate (`docs/program.md`).
//!
//! A program runs with the rights of its user, in a process of its own for each controller. It is killed with all of its process group
//! once its controller is dropped. It can be late, wrong or dead: then it says no more, its controller has the least rate, and a [`Failure`]
//! has the reason.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use lastmile::control::{Action, Feedback, Output, RateController, Sent, Setting, Signal};
use lastmile::telemetry::Visitor;
use lastmile::time::Time;
use lastmile::units::Rate;
use serde_json::{Map, Value};

mod lines;
mod pipe;

use lines::Wishes;
use pipe::{NoAnswer, Pipe};

/// A program that was late in so many runs is started no more.
const MOST_LATE: u32 = 3;

/// The reason why a controller came to nothing, once there is one.
pub type Failure = Arc<OnceLock<String>>;

/// A program that is a rate controller, by its command.
///
/// ```
/// let program = lastmile_net::program::Program::new("sh -c 'exec /usr/local/bin/mine --fast'").unwrap();
/// assert_eq!(program.name(), "sh -c exec mine --fast");
/// assert!(lastmile_net::program::Program::new("mine 'fast").is_err());
/// ```
#[derive(Clone, Debug)]
pub struct Program {
    words: Vec<String>,
    late: Arc<AtomicU32>,
}

impl Program {
    /// Of a command: words with blanks between them, or with quotes around them. No shell reads it.
    ///
    /// # Errors
    /// The command has no word, or a quote without an end.
    pub fn new(command: &str) -> Result<Program, String> {
        let words = words(command).ok_or_else(|| format!("{command}: a quote has no end"))?;
        match words.is_empty() {
            true => Err("an empty command".to_owned()),
            false => Ok(Program { words, late: Arc::default() }),
        }
    }

    /// Its command without the folders of its files.
    pub fn name(&self) -> String {
        let parts = self.words.iter().flat_map(|word| word.split_whitespace());
        let shown: Vec<&str> = parts.map(|part| part.rsplit('/').next().unwrap_or(part)).collect();
        shown.join(" ")
    }

    /// Starts it once, and ends it.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn check(&self) -> std::io::Result<()> {
        Pipe::open(&self.words).map(drop)
    }

    /// A controller that asks a process of its own.
    pub fn controller(&self, setting: &Setting, failure: Failure) -> Box<dyn RateController> {
        let mut asked = Asked {
            program: self.clone(),
            setting: *setting,
            failure,
            pipe: None,
            wishes: Wishes::default(),
            line: Vec::new(),
        };
        if self.late.load(Ordering::Relaxed) >= MOST_LATE {
            asked.fail(&format!("was late in {MOST_LATE} runs, and was not started again"));
            return Box::new(asked);
        }
        match Pipe::open(&self.words) {
            Ok(pipe) => {
                asked.pipe = Some(pipe);
                asked.ask("start", lines::start(setting), |wishes, line| wishes.began(line));
            }
            Err(error) => asked.fail(&format!("cannot be started: {error}")),
        }
        Box::new(asked)
    }
}

/// Words of a command; nothing if a quote has no end.
fn words(command: &str) -> Option<Vec<String>> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for letter in command.chars() {
        match quote {
            Some(open) if letter == open => quote = None,
            None if letter == '\'' || letter == '"' => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            None if letter.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    quote.is_none().then_some(words)
}

/// A controller whose process is asked about every event.
#[derive(Debug)]
struct Asked {
    program: Program,
    setting: Setting,
    failure: Failure,
    /// None once it failed.
    pipe: Option<Pipe>,
    wishes: Wishes,
    line: Vec<u8>,
}

impl Asked {
    fn fail(&mut self, why: &str) {
        let _ = self.failure.set(why.to_owned());
        self.pipe = None;
    }

    fn ask(
        &mut self,
        about: &str,
        event: Map<String, Value>,
        read: impl FnOnce(&mut Wishes, &[u8]) -> Result<(), String>,
    ) {
        let Some(pipe) = &mut self.pipe else { return };
        self.line.clear();
        let written = serde_json::to_writer(&mut self.line, &event).map_err(|error| error.to_string());
        self.line.push(b'\n');
        let answer = written.map_err(NoAnswer::Wrong).and_then(|()| pipe.ask(&self.line));
        let why = match answer.map(|answer| read(&mut self.wishes, &answer)) {
            Ok(Ok(())) => return,
            Ok(Err(wrong)) | Err(NoAnswer::Wrong(wrong)) => wrong,
            Err(NoAnswer::Late(late)) => {
                self.program.late.fetch_add(1, Ordering::Relaxed);
                late
            }
        };
        let at = event.get("now_s").and_then(Value::as_f64).unwrap_or(0.0);
        self.fail(&format!("{why}; asked about `{about}` at {at:.3} s"));
    }

    fn tell(&mut self, about: &str, now: Time, event: impl FnOnce() -> Map<String, Value>) {
        if self.pipe.is_some() && self.wishes.wants(about) {
            self.ask(about, event(), |wishes, line| wishes.answered(now, line));
        }
    }
}

impl RateController for Asked {
    fn on_sent(&mut self, now: Time, sent: &Sent) {
        self.tell("sent", now, || lines::sent(now, sent));
    }

    fn on_feedback(&mut self, now: Time, feedback: &mut Feedback<'_>) {
        self.tell("feedback", now, || lines::feedback(now, feedback));
    }

    fn on_signal(&mut self, now: Time, signal: Signal) {
        self.tell("signal", now, || lines::signal(now, signal));
    }

    fn poll_timeout(&self) -> Option<Time> {
        self.wishes.timer.filter(|_| self.pipe.is_some() && self.wishes.wants("timer"))
    }

    fn on_timeout(&mut self, now: Time) {
        if self.wishes.timer.take_if(|at| *at <= now).is_some() {
            self.tell("timer", now, || lines::timer(now));
        }
    }

    fn poll_action(&mut self) -> Option<Action> {
        self.wishes.actions.pop_front()
    }

    fn output(&self) -> Output {
        match self.pipe {
            Some(_) => self.wishes.output(&self.setting),
            None => Output::rate(self.setting.min),
        }
    }

    fn telemetry(&self, visitor: &mut dyn Visitor) {
        visitor.number("rate", "bit/s", self.output().target.bits_per_second() as f64);
    }

    /// A process cannot be copied: one that begins anew, at this rate.
    fn clone_box(&self) -> Box<dyn RateController> {
        let start: Option<Rate> = Some(self.output().target);
        self.program.controller(&Setting { start, ..self.setting }, self.failure.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lastmile::time::Span;
    use std::time::{Duration, Instant};

    const BEGAN: &str = r#"read a; echo "{\"lastmile\": 1, \"rate_bps\": 300000, \"timer_s\": 1}""#;

    /// The reason for which that script of a shell fails, with its rate after two timers.
    fn run(script: &str) -> (Option<String>, Rate) {
        let program = Program { words: ["sh", "-c", script].map(str::to_owned).into(), late: Arc::default() };
        let failure = Failure::default();
        let mut controller = program.controller(&Setting::default(), failure.clone());
        for second in [1, 2] {
            if controller.poll_timeout().is_some() {
                controller.on_timeout(Time::ZERO + Span::from_secs(second));
            }
        }
        let rate = controller.output().target;
        drop(controller);
        (failure.get().cloned(), rate)
    }

    #[test]
    fn a_command_is_words_and_quotes() {
        let of = |command| Program::new(command).map(|program| program.words);
        assert_eq!(of(" a  'b c' d\"e f\"'' ''").unwrap(), ["a", "b c", "de f", ""]);
        assert_eq!(of("a \"b").unwrap_err(), "a \"b: a quote has no end");
        assert!(of("  ").is_err() && Program::new("/no/such").unwrap().check().is_err());
        assert_eq!(Program::new("python3 /tmp/a.py --gain 2").unwrap().name(), "python3 a.py --gain 2");
    }

    #[test]
    fn a_program_is_asked_until_the_end() {
        let script = format!("{BEGAN}; while read a; do echo \"{{\\\"rate_bps\\\": 400000}}\"; done");
        assert_eq!(run(&script), (None, Rate::ip(400_000)));
    }

    #[test]
    fn programs_that_die_or_talk_nonsense_are_named() {
        let least = Setting::default().min;
        for (script, said) in [
            ("exit 7", "ended (exit status: 7); asked about `start` at 0.000 s"),
            ("exec >&- <&-; sleep 60", "closed its end of the pipe, or was killed"),
            ("read a; echo hello; read a", "answered no object of JSON"),
            ("read a; printf '{}\\n{}\\n'; read a", "answered one line with several"),
            ("read a; head -c 100000 /dev/zero; read a", "answered with a line of more than 65536 bytes"),
            (&format!("{BEGAN}; read a; exit 3"), "ended (exit status: 3); asked about `timer` at 1.000 s"),
            (
                &format!("{BEGAN}; read a; echo '{{\"rate_bps\": NaN}}'; read a"),
                "answered no object of JSON (expected value",
            ),
        ] {
            let (why, rate) = run(script);
            let why = why.unwrap();
            assert!(why.starts_with(said), "{script}: {why}");
            assert_eq!(rate, least);
        }
    }

    #[test]
    fn a_line_that_comes_behind_an_answer_is_none_of_the_next() {
        let script = "read a; echo 1; sleep 0.05; echo 2; read a; echo 3";
        let mut pipe = Pipe::open(&["sh", "-c", script].map(str::to_owned)).unwrap();
        assert_eq!(pipe.ask(b"a\n"), Ok(b"1\n".to_vec()));
        std::thread::sleep(Duration::from_millis(500));
        let refused = NoAnswer::Wrong("wrote a line that was not asked for".to_owned());
        assert_eq!(pipe.ask(b"b\n"), Err(refused));
    }

    /// True if a process is there that has not ended.
    fn lives(pid: &str) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        stat.rsplit(')')
            .next()
            .and_then(|rest| rest.split_whitespace().next())
            .is_some_and(|state| state != "Z")
    }

    #[test]
    fn a_program_that_hangs_is_killed_with_its_children() {
        let file = std::env::temp_dir().join(format!("lastmile-hangs-{}", std::process::id()));
        let script = format!("{BEGAN}; sleep 600 & echo $! $$ > {}; wait", file.display());
        let begins = Instant::now();
        let (why, rate) = run(&script);
        assert_eq!(why.unwrap(), "did not answer within 5 s; asked about `timer` at 1.000 s");
        assert_eq!(rate, Setting::default().min);
        assert!(begins.elapsed() < Duration::from_secs(30));
        let pids = std::fs::read_to_string(&file).unwrap();
        std::fs::remove_file(&file).unwrap();
        let deadline = Instant::now() + Duration::from_secs(10);
        while pids.split_whitespace().any(lives) {
            assert!(Instant::now() < deadline, "{pids} live on");
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    #[test]
    fn a_program_that_was_late_three_times_is_not_started_again() {
        let program = Program::new("no-such-program").unwrap();
        program.late.store(MOST_LATE, Ordering::Relaxed);
        let failure = Failure::default();
        program.controller(&Setting::default(), failure.clone());
        assert_eq!(failure.get().unwrap(), "was late in 3 runs, and was not started again");
    }
}
