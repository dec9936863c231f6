//! Loads of the measurements of `all` as columns of tables.

use lastmile::endpoint::measure::{LoadRow, Row, TcpRow};
use lastmile::estimate::Quantity;
use lastmile::units::Bytes;

/// Columns of a measurement's load, as tables have them.
pub(super) const LOADS: [&str; 5] = [">seconds", ">bytes", ">Mbit/s", ">loss", ">delay"];
/// Columns of TCP beside it.
pub(super) const TCP: [&str; 2] = [">TCP during", ">TCP after"];
/// Meaning of these columns.
const EXPLAINED: &str = "bytes: of its probes, IP; Mbit/s: their mean rate from its beginning to its end; loss: of them; delay: 95 of 100 rose by \
                         no more over the least";
const TCP_EXPLAINED: &str = "TCP: goodput that all connections lost against the same run without measurements, while it ran and until the next, for 10 s at most";
/// Word for a method that sent nothing because others had used up the budget.
pub(super) const NOT_RUN: &str = "not run: the budget is used up (--max-seconds, --max-bytes)";

/// True if these rows are results of `all`.
pub(super) fn is_all(rows: &[Row]) -> bool {
    rows.iter().any(|row| row.load.is_some())
}

/// True if TCP beside any of them was watched.
pub(super) fn has_tcp(rows: &[Row]) -> bool {
    rows.iter().any(|row| row.load.is_some_and(|load| load.tcp_during.is_some()))
}

/// Reason of a row without a number.
pub(super) fn reason(row: &Row) -> Option<&str> {
    let over = matches!(row.code.as_deref(), Some("byte-limit" | "time-limit"));
    let idle = row.load.is_some_and(|load| load.is_idle());
    row.refused.as_deref().map(|why| if over && idle { NOT_RUN } else { why })
}

/// Cells of the columns [`LOADS`], and if `tcp` is set of [`TCP`].
pub(super) fn cells(load: &LoadRow, tcp: bool) -> Vec<String> {
    let none = || "-".to_owned();
    let share = |of: Option<f64>| of.map_or_else(none, |share| format!("{:.1} %", share * 100.0));
    let lost = |row: Option<TcpRow>| match row.and_then(|row| row.lost()) {
        // Not "-0".
        Some(lost) => format!("{} %", (lost * 100.0).round() as i64),
        None => none(),
    };
    let rise = load.delay_rise_seconds.map(|rise| format!("{:.1} ms", rise * 1e3));
    let mut all = vec![
        format!("{:.2}", load.seconds),
        if load.is_idle() { none() } else { Bytes(load.bytes).to_string() },
        load.probing_bps
            .filter(|_| !load.is_idle())
            .map_or_else(none, |bps| format!("{:.2}", bps as f64 / 1e6)),
        share(load.lost),
        rise.unwrap_or_else(none),
    ];
    if tcp {
        all.extend([lost(load.tcp_during), lost(load.tcp_after)]);
    }
    all
}

/// Meaning of the columns of loads.
pub(super) fn explained(tcp: bool) -> String {
    if tcp { format!("{EXPLAINED}; {TCP_EXPLAINED}") } else { EXPLAINED.to_owned() }
}

/// True if a row says how much is left.
pub(super) fn is_found(row: &Row) -> bool {
    row.quantity == Some(Quantity::AvailableBandwidth) && (row.rate_bps.is_some() || row.interval.is_some())
}

#[cfg(test)]
mod tests {
    use super::*;
    use lastmile::endpoint::measure::Load;

    #[test]
    fn tcp_beside_them_is_a_share_of_what_it_had_without() {
        let load = LoadRow {
            tcp_during: Some(TcpRow { seconds: 1.0, goodput_bps: 750, twin_bps: 1_000 }),
            tcp_after: Some(TcpRow { seconds: 1.0, goodput_bps: 5, twin_bps: 0 }),
            ..LoadRow::from(Load::default())
        };
        assert_eq!(cells(&load, true)[5..], ["25 %", "-"]);
        assert_eq!(cells(&load, false).len(), 5);
    }
}
