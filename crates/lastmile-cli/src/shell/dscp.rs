//! DiffServ codepoints by the names that RFCs give them.

/// Names of codepoints: RFC 2474 (CS), 2597 (AF), 3246 (EF), 5865 (VA), 8622 (LE). DF is best effort.
const NAMES: [(&str, u8); 25] = [
    ("df", 0),
    ("be", 0),
    ("le", 1),
    ("cs0", 0),
    ("cs1", 8),
    ("cs2", 16),
    ("cs3", 24),
    ("cs4", 32),
    ("cs5", 40),
    ("cs6", 48),
    ("cs7", 56),
    ("af11", 10),
    ("af12", 12),
    ("af13", 14),
    ("af21", 18),
    ("af22", 20),
    ("af23", 22),
    ("af31", 26),
    ("af32", 28),
    ("af33", 30),
    ("af41", 34),
    ("af42", 36),
    ("af43", 38),
    ("va", 44),
    ("ef", 46),
];

/// A codepoint by its name or number.
pub(crate) fn dscp(text: &str) -> Result<u8, String> {
    let named =
        NAMES.iter().find(|(name, _)| name.eq_ignore_ascii_case(text)).map(|(_, codepoint)| *codepoint);
    named.or_else(|| text.parse().ok()).filter(|codepoint| *codepoint < 64).ok_or_else(|| {
        "a codepoint is 0 to 63, or a name: ef, va, le, df, cs0 to cs7, af11 to af43".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_codepoints() {
        assert_eq!(
            ["ef", "EF", "af41", "cs1", "le", "46", "0"].map(|text| dscp(text).unwrap()),
            [46, 46, 34, 8, 1, 46, 0]
        );
        // RFC 2597: class c and precedence p are 8 c + 2 p; RFC 2474: class selector n is 8 n.
        for (name, codepoint) in NAMES {
            let [class, precedence] =
                [2, 3].map(|at| name.as_bytes().get(at).map_or(0, |digit| digit - b'0'));
            match &name[..2] {
                "af" => assert_eq!(codepoint, 8 * class + 2 * precedence, "{name}"),
                "cs" => assert_eq!(codepoint, 8 * class, "{name}"),
                _ => {}
            }
        }
        for bad in ["64", "-1", "af44", "cs8", "af", ""] {
            assert!(dscp(bad).unwrap_err().contains("af11 to af43"), "{bad}");
        }
    }
}
