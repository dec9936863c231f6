//! Builds SCReAM's sender and the shim before it, where `SCREAM_DIR` names a checkout of github.com/EricssonResearch/scream.

use std::path::Path;

fn main() {
    println!("cargo::rerun-if-env-changed=SCREAM_DIR");
    println!("cargo::rerun-if-changed=scream/shim.cpp");
    println!("cargo::rustc-check-cfg=cfg(scream)");
    let Ok(checkout) = std::env::var("SCREAM_DIR") else { return };
    let code = Path::new(&checkout).join("code");
    let sources = ["ScreamTx.cpp", "ScreamV2Tx.cpp", "ScreamV2TxStream.cpp"].map(|name| code.join(name));
    for source in &sources {
        println!("cargo::rerun-if-changed={}", source.display());
    }
    cc::Build::new()
        .cpp(true)
        .warnings(false)
        .include(&code)
        .file("scream/shim.cpp")
        .files(&sources)
        .compile("scream");
    println!("cargo::rustc-cfg=scream");
}
