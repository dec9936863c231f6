//! Records one endpoint of a scenario's run, in the simulator and in the lab alike.

use std::any::Any;
use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::anyhow;
use lastmile::endpoint::Event;
use lastmile_net::recording::{Header, SharedRecorder, World};
use lastmile_sim::roles::{Found, Place};
use lastmile_sim::runs::{self, Hooks};
use lastmile_sim::scenario::Scenario;

use crate::roles::{self, Recorded};
use crate::shell::exit::Exit;
use crate::shell::replace::unwritable;
use crate::shell::spool::Spool;

/// A recording to a file of what meets real sockets: a disk that takes its time holds nothing up.
pub(crate) fn to_file(file: &Path, header: &Header) -> anyhow::Result<SharedRecorder> {
    let opened = File::create(file).and_then(Spool::new).and_then(|spool| SharedRecorder::new(spool, header));
    opened.map_err(|error| unwritable(file, &error))
}

/// A recording under way. Its first line is written when the run knows the prober's configuration.
pub(crate) struct ScenarioRecorder {
    slot: Slot,
}

/// The recorder, with the number of the endpoint that it records, once that is known.
type Slot = Arc<Mutex<Option<(u32, io::Result<SharedRecorder>)>>>;

impl ScenarioRecorder {
    /// A recording to `out` of the endpoint that is `which` in the order of the scenario's tables, and what to give the run.
    pub(crate) fn begin(
        out: impl Write + Send + 'static,
        scenario: &Scenario,
        which: usize,
        what: Recorded,
    ) -> (ScenarioRecorder, Hooks) {
        let slot = Slot::default();
        let header = roles::header(scenario, what);
        let (made, used) = (Arc::clone(&slot), Arc::clone(&slot));
        let config = Box::new(move |place: Place, config: &dyn Any| {
            let recorder =
                header(config).map_err(io::Error::other).and_then(|header| SharedRecorder::new(out, &header));
            *made.lock().unwrap_or_else(PoisonError::into_inner) = Some((place.number, recorder));
        });
        let input = Box::new(move |now, input: &_| {
            if let Some((_, Ok(recorder))) = &*used.lock().unwrap_or_else(PoisonError::into_inner) {
                recorder.input(now, input);
            }
        });
        let recorded = Some(runs::Recorded { which, config, input });
        (ScenarioRecorder { slot }, Hooks { recorded, ..Hooks::default() })
    }

    /// A recording to a file, of the first endpoint.
    pub(crate) fn create(
        file: &Path,
        scenario: &Scenario,
        what: Recorded,
    ) -> anyhow::Result<(ScenarioRecorder, Hooks)> {
        if scenario.roles.is_empty() {
            return Err(
                Exit::Usage.blame(anyhow!("the scenario has no endpoints, so there is nothing to record"))
            );
        }
        let cannot = |error| unwritable(file, &error);
        let out = File::create(file).map_err(cannot)?;
        Ok(match what.world {
            // Nothing waits for a disk there.
            World::Sim => ScenarioRecorder::begin(out, scenario, 0, what),
            _ => ScenarioRecorder::begin(Spool::new(out).map_err(cannot)?, scenario, 0, what),
        })
    }

    /// Adds the endpoint's own decisions among the run's `events`, and its other records, and ends the recording.
    pub(crate) fn finish(self, events: &[Event], found: &Found) -> anyhow::Result<()> {
        let recorder = self.slot.lock().unwrap_or_else(PoisonError::into_inner).take();
        let (number, recorder) =
            recorder.ok_or_else(|| anyhow!("nothing was recorded: the run had no endpoint"))?;
        let recorder = recorder?;
        events.iter().filter(|event| event.node == number).for_each(|event| recorder.event(event));
        found.records(number).iter().for_each(|record| recorder.record(record));
        recorder.finish()?;
        Ok(())
    }
}
