//! [`Audience`]: the caller that waits for a study.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Gets the progress of a study. Every method does nothing by default.
pub trait Progress: Send + Sync {
    /// Something of so many steps begins; what went on before is over.
    fn begin(&self, what: &str, steps: u64) {
        let _ = (what, steps);
    }

    /// So many steps are done.
    fn advance(&self, steps: u64) {
        let _ = steps;
    }

    /// It is over.
    fn end(&self) {}
}

impl Progress for () {}

/// The audience of a study sees its progress and may end it, from another thread, by setting `stop`.
#[derive(Clone)]
pub struct Audience {
    /// Ends the study once it is set.
    pub stop: Arc<AtomicBool>,
    /// Is told how far it has come.
    pub progress: Arc<dyn Progress>,
}

impl Default for Audience {
    /// Nobody.
    fn default() -> Audience {
        Audience { stop: Arc::default(), progress: Arc::new(()) }
    }
}

impl Audience {
    /// True if the study is to end.
    pub(crate) fn is_gone(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }

    /// For what is told step by step.
    pub(crate) fn goes_on(&self) -> ControlFlow<()> {
        if self.is_gone() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}
