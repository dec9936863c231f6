//! Received pictures on their way to another program, such as a player.
//!
//! A thread writes, so that a program which is slower than the stream, or paused, holds nothing up. Pictures without room are left out.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

/// Bytes that may wait: half a second of pictures of 640x480 at 30 in a second, or one that is larger than all of it.
const MOST: usize = 8 << 20;
/// At the end the program has so long to take what waits.
const PATIENCE: Duration = Duration::from_secs(1);

/// A pipe or a device to write to. A write takes all bytes or none: [`ErrorKind::WouldBlock`] says that there is no room for them. One of no bytes
/// says if half of the room is free.
#[derive(Debug)]
pub struct Pipe(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    waiting: VecDeque<Vec<u8>>,
    /// Bytes that wait, with those that are being written.
    bytes: usize,
    /// The fault of the pipe: nobody reads any more.
    error: Option<io::Error>,
    closed: bool,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes what waits until the pipe is closed and nothing waits, or the pipe fails.
    fn drain(&self, mut out: impl Write) {
        let mut state = self.state();
        loop {
            while state.waiting.is_empty() && !state.closed {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            let Some(bytes) = state.waiting.pop_front() else { return };
            drop(state);
            let written = out.write_all(&bytes).and_then(|()| out.flush());
            state = self.state();
            state.bytes -= bytes.len();
            state.error = written.err();
            self.changed.notify_all();
            if state.error.is_some() {
                return;
            }
        }
    }
}

impl Pipe {
    /// A pipe to that.
    ///
    /// # Errors
    /// The system has no more threads.
    pub fn new(out: impl Write + Send + 'static) -> io::Result<Pipe> {
        let shared = Arc::new(Shared::default());
        let own = Arc::clone(&shared);
        thread::Builder::new().name("lastmile-pipe".to_owned()).spawn(move || own.drain(out))?;
        Ok(Pipe(shared))
    }
}

impl Write for Pipe {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.0.state();
        if let Some(error) = &state.error {
            return Err(again(error));
        }
        let most = if bytes.is_empty() { MOST / 2 } else { MOST };
        if state.bytes > 0 && state.bytes + bytes.len() > most {
            return Err(ErrorKind::WouldBlock.into());
        }
        if !bytes.is_empty() {
            state.bytes += bytes.len();
            state.waiting.push_back(bytes.to_vec());
            self.0.changed.notify_all();
        }
        Ok(bytes.len())
    }

    /// Waits for nothing: only the end of the pipe does.
    fn flush(&mut self) -> io::Result<()> {
        self.0.state().error.as_ref().map_or(Ok(()), |error| Err(again(error)))
    }
}

/// The fault once more.
fn again(error: &io::Error) -> io::Error {
    error.raw_os_error().map_or_else(|| error.kind().into(), io::Error::from_raw_os_error)
}

impl Drop for Pipe {
    fn drop(&mut self) {
        let mut state = self.0.state();
        state.closed = true;
        self.0.changed.notify_all();
        let waits = |state: &mut State| state.bytes > 0 && state.error.is_none();
        let _ = self.0.changed.wait_timeout_while(state, PATIENCE, waits);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, pipe};

    #[test]
    fn a_reader_that_is_paused_gets_the_rest_later_and_nobody_waits_for_it() {
        let (mut reader, writer) = pipe().unwrap();
        let mut pipe = Pipe::new(writer).unwrap();
        // One that is larger than all room has it for itself.
        let large = vec![1; MOST + 1];
        pipe.write_all(&large).unwrap();
        assert_eq!(pipe.write_all(&[2; 10]).unwrap_err().kind(), ErrorKind::WouldBlock);
        assert_eq!(pipe.write(&[]).unwrap_err().kind(), ErrorKind::WouldBlock);
        let mut came = vec![0; MOST + 1];
        reader.read_exact(&mut came).unwrap();
        assert_eq!(came, large);
        while pipe.write_all(&[3; 10]).is_err() {
            thread::yield_now();
        }
        drop(pipe);
        let mut rest = Vec::new();
        reader.read_to_end(&mut rest).unwrap();
        assert_eq!(rest, [3; 10]);
    }

    #[test]
    fn a_reader_that_has_ended_is_told() {
        let (reader, writer) = pipe().unwrap();
        let mut pipe = Pipe::new(writer).unwrap();
        drop(reader);
        pipe.write_all(b"nobody").unwrap();
        let failed = (0..1_000).find_map(|_| {
            thread::sleep(Duration::from_millis(1));
            pipe.flush().err()
        });
        assert_eq!(failed.unwrap().kind(), ErrorKind::BrokenPipe);
        assert_eq!(pipe.write(b"again").unwrap_err().kind(), ErrorKind::BrokenPipe);
    }
}
