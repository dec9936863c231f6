//! Options whose values are a few names.

/// Declares an enumeration whose values users write by name, as the value of an option.
///
/// ```
/// use lastmile::options::{OptionType, Scalar};
/// lastmile::names! {
///     /// Whose rules.
///     pub enum Preset {
///         /// The standard's.
///         #[default]
///         Rfc = "rfc",
///         /// A simulator's.
///         Ns2 = "ns-2",
///     }
/// }
/// assert_eq!(Preset::read(&Scalar::parse("ns-2")), Ok(Preset::Ns2));
/// assert_eq!(Preset::read(&Scalar::parse("ns-3")).unwrap_err(), "must be one of rfc, ns-2, not ns-3");
/// ```
#[macro_export]
macro_rules! names {
    (
        $(#[$about:meta])*
        $vis:vis enum $Name:ident {$(
            $(#[$meta:meta])*
            $Value:ident = $text:literal,
        )*}
    ) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
        $vis enum $Name {$(
            $(#[$meta])*
            $Value,
        )*}

        impl $crate::options::OptionType for $Name {
            const KIND: $crate::options::Kind = $crate::options::Kind::Name;
            type Bound = String;

            fn read(given: &$crate::options::Scalar) -> Result<$Name, String> {
                match given.to_string().as_str() {
                    $($text => Ok($Name::$Value),)*
                    _ => Err(format!("must be one of {}, not {given}", Self::any())),
                }
            }

            fn show(&self) -> Option<$crate::options::Scalar> {
                let text = match self {$(
                    $Name::$Value => $text,
                )*};
                Some($crate::options::Scalar::Text(text.to_owned()))
            }

            fn bound(&self) -> Option<&String> {
                None
            }

            fn any() -> String {
                [$($text),*].join(", ")
            }
        }
    };
}
