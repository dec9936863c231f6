//! Records the first session of a scenario's run, in the simulator and in the lab alike.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::anyhow;
use lastmile::endpoint::ProberConfig;
use lastmile::event::{Event, PacketSink};
use lastmile::report::{Direction, StreamRecord};
use lastmile::time::Span;
use lastmile_net::recording::{SharedRecorder, World};
use lastmile_sim::runs::{Hooks, sessions};
use lastmile_sim::scenario::{MeasureSpec, Scenario};

use crate::exit::Exit;
use crate::session::{Measured, Session};

/// What a recording needs to know before the run.
pub(crate) struct Recorded {
    pub(crate) world: World,
    /// The number of the initiating host.
    pub(crate) node: u16,
    /// Uncertainty of stamps beyond their resolution.
    pub(crate) noise: Span,
    /// Seeds what the methods draw.
    pub(crate) method_seed: u64,
    pub(crate) measurements: Vec<(Direction, Measured)>,
}

impl Recorded {
    /// The first session of a scenario.
    pub(crate) fn of(scenario: &Scenario, world: World, noise: Span, seed: u64) -> anyhow::Result<Recorded> {
        let sessions = sessions(scenario).map_err(crate::scenarios::blame)?;
        let first = sessions.first().ok_or_else(|| {
            Exit::Usage.blame(anyhow!("the scenario measures nothing, so there is nothing to record"))
        })?;
        let measured =
            |(spec, direction): &(MeasureSpec, Direction)| (*direction, spec.method.clone().into());
        let measurements = first.measures.iter().map(measured).collect();
        Ok(Recorded { world, node: first.from as u16, noise, method_seed: seed, measurements })
    }
}

/// A recording under way. Its first line is written when the run knows the prober's configuration.
pub(crate) struct ScenarioRecorder {
    slot: Arc<Mutex<Option<io::Result<SharedRecorder>>>>,
    /// Whose decisions it keeps.
    node: u16,
}

impl ScenarioRecorder {
    /// A recording to `out`, and what to give the run.
    pub(crate) fn begin(out: impl Write + Send + 'static, what: Recorded) -> (ScenarioRecorder, Hooks) {
        let (slot, node) = (Arc::new(Mutex::new(None)), what.node);
        let (made, used) = (Arc::clone(&slot), Arc::clone(&slot));
        let config = Box::new(move |config: &ProberConfig| {
            let session = Session::of(config, what.noise, what.method_seed, what.measurements);
            let header = session.header(what.world, config).map_err(io::Error::other);
            let recorder = header.and_then(|header| SharedRecorder::new(out, &header));
            *made.lock().unwrap_or_else(PoisonError::into_inner) = Some(recorder);
        });
        let input = Box::new(move |now, input: &_| {
            if let Some(Ok(recorder)) = &*used.lock().unwrap_or_else(PoisonError::into_inner) {
                recorder.input(now, input);
            }
        });
        (
            ScenarioRecorder { slot, node },
            Hooks { config: Some(config), input: Some(input), ..Hooks::default() },
        )
    }

    /// A recording to a file.
    pub(crate) fn create(file: &Path, what: Recorded) -> anyhow::Result<(ScenarioRecorder, Hooks)> {
        let out = File::create(file)
            .map_err(|error| Exit::Usage.blame(anyhow!("cannot write {}: {error}", file.display())))?;
        Ok(ScenarioRecorder::begin(out, what))
    }

    /// Adds what the first session decided, of all that the run did, and ends the recording. Streams are session by session.
    pub(crate) fn finish(self, events: &[Event], streams: &[Vec<StreamRecord>]) -> anyhow::Result<()> {
        let recorder = self.slot.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut recorder =
            recorder.ok_or_else(|| anyhow!("nothing was recorded: the run had no session"))??;
        events.iter().filter(|event| event.node == self.node).for_each(|event| recorder.event(event));
        streams.iter().take(1).flatten().for_each(|stream| recorder.stream(stream));
        recorder.finish()?;
        Ok(())
    }
}
