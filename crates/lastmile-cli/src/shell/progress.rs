//! [`Progress`]: a line with the state of long work, for people who wait.

use std::io::IsTerminal;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Shorter waits show no bar.
const PATIENCE: Duration = Duration::from_secs(2);

/// A bar on standard error, if that is a terminal and it takes longer than two seconds; gone when dropped.
pub(crate) struct Progress {
    bar: ProgressBar,
    /// Thread that shows the bar after a while, and the channel whose end stops it.
    shows: Option<(Sender<()>, JoinHandle<()>)>,
}

impl Progress {
    /// Of so many steps.
    pub(crate) fn new(what: &str, steps: u64) -> Progress {
        Progress::of(what, Some(steps), "{msg} {wide_bar} {percent} % {eta}")
    }

    /// The time since its beginning, of work with an unknown end.
    #[cfg(feature = "study")]
    pub(crate) fn waiting(what: &str) -> Progress {
        Progress::of(what, None, "{msg} {elapsed}")
    }

    fn of(what: &str, steps: Option<u64>, template: &str) -> Progress {
        let bar = ProgressBar::with_draw_target(steps, ProgressDrawTarget::hidden());
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.set_message(what.to_owned());
        let shows = std::io::stderr().is_terminal().then(|| {
            let (waiting, over) = channel();
            let shown = bar.clone();
            let thread = std::thread::spawn(move || {
                if over.recv_timeout(PATIENCE) == Err(RecvTimeoutError::Timeout) {
                    shown.set_draw_target(ProgressDrawTarget::stderr());
                    shown.enable_steady_tick(Duration::from_millis(200));
                }
            });
            (waiting, thread)
        });
        Progress { bar, shows }
    }

    /// The bar, for those who move it from elsewhere.
    pub(crate) fn bar(&self) -> ProgressBar {
        self.bar.clone()
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some((waiting, thread)) = self.shows.take() {
            drop(waiting);
            let _ = thread.join();
        }
        self.bar.finish_and_clear();
    }
}

#[cfg(feature = "study")]
pub(crate) use study::audience;

#[cfg(feature = "study")]
mod study {
    use super::Progress;

    /// Shows a study's steps.
    #[derive(Default)]
    struct Shown(std::sync::Mutex<Option<Progress>>);

    impl Shown {
        fn set(&self, progress: Option<Progress>) {
            *self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = progress;
        }
    }

    impl lastmile_study::Progress for Shown {
        fn begin(&self, what: &str, steps: u64) {
            self.set(None);
            self.set(Some(Progress::new(what, steps)));
        }

        fn advance(&self, steps: u64) {
            if let Some(progress) = &*self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner) {
                progress.bar.inc(steps);
            }
        }

        fn end(&self) {
            self.set(None);
        }
    }

    /// Audience of a study at a terminal: a bar shows its progress, and a signal ends it.
    pub(crate) fn audience() -> lastmile_study::Audience {
        let stop = std::sync::Arc::clone(crate::shell::signals::stop());
        lastmile_study::Audience { stop, progress: std::sync::Arc::new(Shown::default()) }
    }
}
