//! Ctrl-C and SIGTERM set a flag that every long loop looks at.

use std::ops::ControlFlow;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

static STOP: OnceLock<std::sync::Arc<AtomicBool>> = OnceLock::new();

/// The flag; the handlers are in place once this was called. A second signal ends the process at once.
pub(crate) fn stop() -> &'static std::sync::Arc<AtomicBool> {
    STOP.get_or_init(|| {
        let flag = std::sync::Arc::new(AtomicBool::new(false));
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // Registration fails only for signals that cannot be caught.
            let _ =
                signal_hook::flag::register_conditional_shutdown(signal, 130, std::sync::Arc::clone(&flag));
            let _ = signal_hook::flag::register(signal, std::sync::Arc::clone(&flag));
        }
        flag
    })
}

/// True once a signal came.
pub(crate) fn stopped() -> bool {
    stop().load(Ordering::Relaxed)
}

/// Breaks once a signal came, for work in steps.
pub(crate) fn goes_on() -> ControlFlow<()> {
    if stopped() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}
