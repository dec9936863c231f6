//! Finds the sources of others that the adapters are built with, none of which are in this repository: SCReAM's in the checkout that
//! `SCREAM_DIR` names, and GoogCC's in the package `str0m`, which cargo has (feature `googcc`).

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-env-changed=SCREAM_DIR");
    println!("cargo::rustc-check-cfg=cfg(scream)");
    if let Ok(checkout) = std::env::var("SCREAM_DIR") {
        scream(Path::new(&checkout));
    }
    if std::env::var_os("CARGO_FEATURE_GOOGCC").is_some() {
        googcc();
    }
}

/// Builds SCReAM's sender and the shim before it.
fn scream(checkout: &Path) {
    let code = checkout.join("code");
    let sources = ["ScreamTx.cpp", "ScreamV2Tx.cpp", "ScreamV2TxStream.cpp"].map(|name| code.join(name));
    println!("cargo::rerun-if-changed=scream/shim.cpp");
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
    let version =
        Command::new("git").arg("-C").arg(checkout).args(["rev-parse", "--short=7", "HEAD"]).output();
    let version = version.ok().filter(|output| output.status.success());
    let version = version.and_then(|output| String::from_utf8(output.stdout).ok());
    println!("cargo::rustc-env=SCREAM_VERSION={}", version.as_deref().map_or("an unknown commit", str::trim));
    println!("cargo::rustc-cfg=scream");
}

/// Writes the modules of str0m's estimator, as they are, for `src/lib.rs` to take in.
fn googcc() {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let target = std::env::var("TARGET").expect("cargo sets TARGET");
    let output = Command::new(cargo)
        .args(["metadata", "--format-version=1", "--features=googcc", "--filter-platform", &target])
        .output()
        .expect("cargo runs");
    assert!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    let packages = String::from_utf8_lossy(&output.stdout).into_owned();
    let (str0m, proto) = (folder(&packages, "str0m-0.25.0"), folder(&packages, "str0m-proto-0.8.0"));
    let modules = [
        ("bwe_", str0m.join("src/bwe/mod.rs")),
        ("average", str0m.join("src/util/average.rs")),
        ("time_tricks", str0m.join("src/util/time_tricks.rs")),
        ("bandwidth", proto.join("src/bandwidth.rs")),
    ];
    let mut text = String::new();
    for (name, path) in modules {
        assert!(path.is_file(), "{} is missing", path.display());
        text += &format!("#[allow(warnings, clippy::all)]\n#[path = {path:?}]\nmod {name};\n");
    }
    let out = std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR");
    std::fs::write(Path::new(&out).join("googcc.rs"), text).expect("OUT_DIR can be written");
}

/// The folder of a package, by its manifest in cargo's metadata.
fn folder(packages: &str, name: &str) -> PathBuf {
    let end = format!("{name}/Cargo.toml\"");
    let until = packages.find(&end).unwrap_or_else(|| panic!("cargo has no {name}")) + name.len();
    let from = packages[..until].rfind('"').map_or(0, |quote| quote + 1);
    PathBuf::from(&packages[from..until])
}
