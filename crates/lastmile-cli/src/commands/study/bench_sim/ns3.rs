//! ns-3's scenarios are C++ programs, compiled against what is installed.

use std::path::{Path, PathBuf};
use std::process::Command;

/// ns-3's programs, compiled.
pub(super) struct Ns3(PathBuf);

impl Ns3 {
    const MODULES: [&str; 8] = [
        "ns3-applications",
        "ns3-core",
        "ns3-internet",
        "ns3-mobility",
        "ns3-network",
        "ns3-point-to-point",
        "ns3-traffic-control",
        "ns3-wifi",
    ];

    pub(super) fn compile(programs: &Path, into: &Path) -> Result<Ns3, String> {
        let flags = Command::new("pkg-config").args(["--cflags", "--libs"]).args(Ns3::MODULES).output();
        let flags = match flags {
            Ok(flags) if flags.status.success() => String::from_utf8_lossy(&flags.stdout).into_owned(),
            _ => return Err("apt-get install libns3-dev libgsl-dev g++ pkg-config".to_owned()),
        };
        for program in ["dumbbell", "wlan"] {
            let compiler = Command::new("g++")
                .args(["-O2", "-o"])
                .arg(into.join(program))
                .arg(programs.join(format!("{program}.cc")))
                .args(flags.split_whitespace())
                .output()
                .map_err(|error| format!("g++: {error}"))?;
            if !compiler.status.success() {
                let errors = String::from_utf8_lossy(&compiler.stderr).into_owned();
                let error = errors.lines().find(|l| l.contains("error")).unwrap_or_default();
                return Err(format!("{program}.cc does not compile: {error}"));
            }
        }
        Ok(Ns3(into.to_owned()))
    }

    pub(super) fn program(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}
