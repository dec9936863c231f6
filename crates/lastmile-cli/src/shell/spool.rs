//! [`Spool`]: a file that is written by a thread of its own, because a disk that takes its time must not hold up the lab.

use std::io::{self, Write};
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::Builder;

/// Pieces that may wait for the disk; beyond them a writer waits.
const WAITING: usize = 1_024;

enum Order {
    Write(Vec<u8>),
    /// Says how all that was written so far went.
    Flush(SyncSender<io::Result<()>>),
}

/// Hands written bytes to a thread; errors come with the next [`flush`](Write::flush). Bytes that were not flushed may be lost.
pub(crate) struct Spool(SyncSender<Order>);

impl Spool {
    /// A spool to `out`.
    ///
    /// # Errors
    /// The system has no more threads.
    pub(crate) fn new(mut out: impl Write + Send + 'static) -> io::Result<Spool> {
        let (orders, taken) = sync_channel(WAITING);
        Builder::new().name("lastmile-spool".into()).spawn(move || {
            let mut done = Ok(());
            for order in taken {
                match order {
                    Order::Write(bytes) if done.is_ok() => done = out.write_all(&bytes),
                    Order::Write(_) => {}
                    Order::Flush(tell) => {
                        let done = std::mem::replace(&mut done, Ok(())).and_then(|()| out.flush());
                        // Nobody else waits for it.
                        let _ = tell.send(done);
                    }
                }
            }
        })?;
        Ok(Spool(orders))
    }

    fn order(&self, order: Order) -> io::Result<()> {
        self.0.send(order).map_err(|_| gone())
    }
}

fn gone() -> io::Error {
    io::Error::other("the thread that writes is gone; this is a defect of lastmile")
}

impl Write for Spool {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.order(Order::Write(bytes.to_vec()))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let (tell, told) = sync_channel(1);
        self.order(Order::Flush(tell))?;
        told.recv().map_err(|_| gone())?
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    #[derive(Clone, Default)]
    struct Disk(Arc<Mutex<Vec<u8>>>);

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            std::thread::sleep(std::time::Duration::from_micros(200));
            let mut disk = self.0.lock().unwrap();
            if disk.len() > 10_000 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            disk.extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn all_is_written_in_order_and_a_full_disk_is_told_at_the_end() {
        let disk = Disk::default();
        let mut spool = Spool::new(disk.clone()).unwrap();
        (0..100_u8).for_each(|byte| spool.write_all(&[byte; 90]).unwrap());
        spool.flush().unwrap();
        let expected: Vec<u8> = (0..100_u8).flat_map(|byte| [byte; 90]).collect();
        assert_eq!(*disk.0.lock().unwrap(), expected);
        (0..100_u8).for_each(|byte| spool.write_all(&[byte; 90]).unwrap());
        assert_eq!(spool.flush().unwrap_err().kind(), io::ErrorKind::StorageFull);
    }
}
