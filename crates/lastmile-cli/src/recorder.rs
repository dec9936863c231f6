//! Records the first session of a scenario's run, in the simulator and in the lab alike.

use std::any::Any;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::anyhow;
use lastmile::endpoint::Event;
use lastmile::endpoint::measure::ProberConfig;
use lastmile::report::Direction;
use lastmile::time::Span;
use lastmile_net::recording::{SharedRecorder, World};
use lastmile_sim::roles::measure::{MeasureSpec, sessions};
use lastmile_sim::roles::{Found, Place};
use lastmile_sim::runs::{self, Hooks};
use lastmile_sim::scenario::Scenario;

use crate::exit::Exit;
use crate::session::{Measured, Session};

/// What a recording needs to know before the run.
pub(crate) struct Recorded {
    pub(crate) world: World,
    /// Uncertainty of stamps beyond their resolution.
    pub(crate) noise: Span,
    /// Seeds what the methods draw.
    pub(crate) method_seed: u64,
    pub(crate) measurements: Vec<(Direction, Measured)>,
}

impl Recorded {
    /// The first session of a scenario.
    pub(crate) fn of(scenario: &Scenario, world: World, noise: Span, seed: u64) -> anyhow::Result<Recorded> {
        let sessions = sessions(scenario);
        let first = sessions.first().ok_or_else(|| {
            Exit::Usage.blame(anyhow!("the scenario measures nothing, so there is nothing to record"))
        })?;
        let measured =
            |(spec, direction): &(MeasureSpec, Direction)| (*direction, spec.method.clone().into());
        let measurements = first.measures.iter().map(measured).collect();
        Ok(Recorded { world, noise, method_seed: seed, measurements })
    }
}

/// A recording under way. Its first line is written when the run knows the prober's configuration.
pub(crate) struct ScenarioRecorder {
    slot: Slot,
}

/// The recorder, with the number of the endpoint that it records, once that is known.
type Slot = Arc<Mutex<Option<(u32, io::Result<SharedRecorder>)>>>;

impl ScenarioRecorder {
    /// A recording to `out`, and what to give the run.
    pub(crate) fn begin(out: impl Write + Send + 'static, what: Recorded) -> (ScenarioRecorder, Hooks) {
        let slot = Slot::default();
        let (made, used) = (Arc::clone(&slot), Arc::clone(&slot));
        let config = Box::new(move |place: Place, config: &dyn Any| {
            let Some(config) = config.downcast_ref::<ProberConfig>() else { return };
            let session = Session::of(config, what.noise, what.method_seed, what.measurements);
            let header = session.header(what.world, config).map_err(io::Error::other);
            let recorder = header.and_then(|header| SharedRecorder::new(out, &header));
            *made.lock().unwrap_or_else(PoisonError::into_inner) = Some((place.number, recorder));
        });
        let input = Box::new(move |now, input: &_| {
            if let Some((_, Ok(recorder))) = &*used.lock().unwrap_or_else(PoisonError::into_inner) {
                recorder.input(now, input);
            }
        });
        let recorded = Some(runs::Recorded { which: 0, config, input });
        (ScenarioRecorder { slot }, Hooks { recorded, ..Hooks::default() })
    }

    /// A recording to a file.
    pub(crate) fn create(file: &Path, what: Recorded) -> anyhow::Result<(ScenarioRecorder, Hooks)> {
        let out = File::create(file)
            .map_err(|error| Exit::Usage.blame(anyhow!("cannot write {}: {error}", file.display())))?;
        Ok(ScenarioRecorder::begin(out, what))
    }

    /// Adds what the endpoint decided, of all that the run did, and what else came of it, and ends the recording.
    pub(crate) fn finish(self, events: &[Event], found: &Found) -> anyhow::Result<()> {
        let recorder = self.slot.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (number, recorder) =
            recorder.ok_or_else(|| anyhow!("nothing was recorded: the run had no session"))?;
        let recorder = recorder?;
        events.iter().filter(|event| event.node == number).for_each(|event| recorder.event(event));
        found.records(number).iter().for_each(|record| recorder.record(record));
        recorder.finish()?;
        Ok(())
    }
}
