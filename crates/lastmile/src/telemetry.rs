//! [`Visitor`]: is shown the present state of an algorithm, for live views, series and debugging.
//!
//! Decisions come as events. State is a loss event rate, a share of time, a smoothed round-trip time.

/// Is shown an algorithm's state, one value at a time, in an order that does not change.
///
/// ```
/// use lastmile::telemetry::Visitor;
/// struct Line(String);
/// impl Visitor for Line {
///     fn number(&mut self, name: &'static str, unit: &'static str, value: f64) {
///         self.0 += &format!("{name}={value} {unit};");
///     }
///     fn state(&mut self, name: &'static str, value: &'static str) {
///         self.0 += &format!("{name}={value};");
///     }
/// }
/// let mut line = Line(String::new());
/// lastmile::control::build(&"fixed".parse()?, &Default::default())?.telemetry(&mut line);
/// assert_eq!(line.0, "rate=1000000 bit/s;");
/// # Ok::<(), lastmile::options::ChoiceError>(())
/// ```
pub trait Visitor {
    /// A number with its unit; an empty unit for counts and shares of one.
    fn number(&mut self, name: &'static str, unit: &'static str, value: f64);

    /// The present one of several states.
    fn state(&mut self, name: &'static str, value: &'static str);
}
