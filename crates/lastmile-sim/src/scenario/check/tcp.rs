//! TCP connections: their options and their data.

use super::traffic::Flow;
use super::{Check, Checked};
use crate::network::ConfigError;
use crate::network::tcp::{App, FileSize};
use crate::scenario::TcpSpec;
use crate::scenario::raw::Kind;

impl Check<'_> {
    /// A TCP connection, where it is one.
    pub(super) fn tcp(&self, flow: Flow<'_>) -> Checked<Option<TcpSpec>> {
        let Flow { raw, .. } = flow;
        if !raw.kind.is_tcp() {
            return Ok(None);
        }
        let config = raw.tcp.clone();
        if let Err(ConfigError { key, reason }) = config.check() {
            let (own, table) = (flow.key(&format!("tcp.{key}")), flow.key("tcp"));
            // Or the default that another key made impossible.
            return match self.file.has(&own) {
                true => self.refuse(&own, reason),
                false => self.refuse(&table, format!("{key}: {reason}")),
            };
        }
        let initial_rto = flow.key("tcp.initial_rto");
        let inside = (config.min_rto..=config.max_rto).contains(&config.initial_rto);
        self.ensure(inside || !self.file.has(&initial_rto), || {
            let range = format!("{} and {}", config.min_rto, config.max_rto);
            (&initial_rto, format!("not between min_rto and max_rto, {range}"))
        })?;
        let app = match raw.kind {
            Kind::File => App::File { size: *self.required(flow, "bytes", &raw.bytes)? },
            Kind::Files => {
                let min = *self.required(flow, "bytes", &raw.bytes)?;
                let size = FileSize { min, max: raw.bytes_max.unwrap_or(min) };
                App::Files { size, pause: *self.required(flow, "pause", &raw.pause)? }
            }
            _ => App::Bulk,
        };
        if let Err(ConfigError { key, reason }) = app.check() {
            let size = if raw.bytes_max.is_some() { "bytes_max" } else { "bytes" };
            return self.refuse(&flow.key(if key == "pause" { &key } else { size }), reason);
        }
        Ok(Some(TcpSpec { config, app }))
    }
}
