//! Recordings and event files: whatever is read can be written and is read again as the same.
#![no_main]

use lastmile_net::recording::{Entry, Reader, Recorder};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(mut reader) = Reader::new("fuzz", data) else { return };
    let mut entries = Vec::new();
    while let Ok(Some(entry)) = reader.next_entry() {
        entries.push(entry);
    }
    let Some(header) = reader.header() else { return };
    let mut file = Vec::new();
    let mut recorder = Recorder::new(&mut file, header).expect("memory takes everything");
    for entry in &entries {
        match entry {
            Entry::Input { now, input } => recorder.input(*now, input),
            Entry::Event(event) => recorder.event(event),
            Entry::Record(record) => recorder.record(record),
        }
    }
    // A line may grow beyond the limit when it is written anew, escapes being longer than what they stand for.
    if recorder.finish().is_err() {
        return;
    }
    let mut again = Reader::new("again", file.as_slice()).expect("it was just written");
    assert_eq!(again.header(), reader.header());
    for entry in entries {
        assert_eq!(again.next_entry().expect("it was just written"), Some(entry));
    }
    assert!(matches!(again.next_entry(), Ok(None)));
});
