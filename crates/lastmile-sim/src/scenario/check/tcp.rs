//! TCP connections: their options and what they have to send.

use core::ops::Range;

use lastmile::units::Bytes;
use toml::Spanned;

use super::{Check, Checked};
use crate::network::ConfigError;
use crate::network::tcp::{App, FileSize};
use crate::scenario::TcpSpec;
use crate::scenario::raw::{Kind, RawTraffic};

impl Check<'_> {
    /// A TCP connection, where it is one.
    pub(super) fn tcp(&self, index: usize, raw: &RawTraffic) -> Checked<Option<TcpSpec>> {
        if !raw.kind.get_ref().is_tcp() {
            return Ok(None);
        }
        let config = raw.tcp.as_ref().map(|tcp| tcp.get_ref().clone()).unwrap_or_default();
        if let Err(ConfigError { key, reason }) = config.check() {
            let table = raw.tcp.as_ref().map_or(raw.kind.span(), Spanned::span);
            return match self.place.below(&table, &key) {
                Some(at) => self.error(at, reason),
                // The default that another key made impossible.
                None => self.error(table, format!("{key}: {reason}")),
            };
        }
        let initial_rto = format!("traffic[{index}].tcp.initial_rto");
        let inside = (config.min_rto..=config.max_rto).contains(&config.initial_rto);
        if !inside && self.place.has(&initial_rto) {
            let reason =
                format!("not between min_rto and max_rto, {} and {}", config.min_rto, config.max_rto);
            return self.refuse(&initial_rto, reason);
        }
        let app = match raw.kind.get_ref() {
            Kind::File => App::File { size: self.bytes(raw)? },
            Kind::Files => {
                let min = self.bytes(raw)?;
                let max = raw.bytes_max.as_ref().map_or(min, |max| max.get_ref().0);
                let pause = self.required(raw, "pause", raw.pause.as_ref())?.get_ref().0;
                App::Files { size: FileSize { min, max }, pause }
            }
            _ => App::Bulk,
        };
        if let Err(ConfigError { key, reason }) = app.check() {
            let size = || raw.bytes_max.as_ref().or(raw.bytes.as_ref()).map(Spanned::span);
            let pause = || raw.pause.as_ref().map(Spanned::span);
            let at: Option<Range<usize>> = if key == "pause" { pause() } else { size() };
            return self.error(at.unwrap_or(raw.kind.span()), reason);
        }
        Ok(Some(TcpSpec { config, app }))
    }

    fn bytes(&self, raw: &RawTraffic) -> Checked<Bytes> {
        Ok(self.required(raw, "bytes", raw.bytes.as_ref())?.get_ref().0)
    }
}
