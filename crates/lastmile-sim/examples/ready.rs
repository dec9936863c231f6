//! Runs a ready scenario with one call: `ready NAME SEED` prints the document that `lastmile sim NAME --json` prints, `ready`
//! the names. Built for WebAssembly it exports `run`, and `scripts/wasm.mjs` holds it to the native one, byte for byte.

use std::io::Write;

use lastmile_sim::scenario::{BUILTIN, builtin};

/// The document of a run, as text, or why there is none.
fn document(name: &str, seed: u64) -> Result<String, Box<dyn std::error::Error>> {
    let scenario = builtin(name).ok_or("no ready scenario has that name")?;
    Ok(serde_json::to_string_pretty(&scenario.run(seed)?.json(&scenario, seed))?)
}

/// Runs the ready scenario of that number and leaves the document in memory: its address, and above 32 bits its length.
#[unsafe(no_mangle)]
pub extern "C" fn run(number: u32, seed: u64) -> u64 {
    let name = BUILTIN.get(number as usize).copied().unwrap_or_default();
    let text = document(name, seed).unwrap_or_else(|error| error.to_string()).leak();
    (text.len() as u64) << 32 | text.as_ptr() as u64
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let text = match (args.next(), args.next()) {
        (Some(name), Some(seed)) => document(&name, seed.parse()?)?,
        _ => BUILTIN.join("\n"),
    };
    Ok(writeln!(std::io::stdout(), "{text}")?)
}
