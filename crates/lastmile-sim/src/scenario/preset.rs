//! `preset` in a connection's options: the name of an implementation, for what it does unless told otherwise. What the file
//! says beside it stays.

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::error::{Place, ScenarioError};
use crate::network::tcp::PRESETS;

/// Puts the options of presets in the place of their names.
pub(super) fn fill(place: &mut Place<'_>) -> Result<(), ScenarioError> {
    let Some(DeValue::Array(flows)) = place.document.get_mut("traffic").map(Spanned::get_mut) else {
        return Ok(());
    };
    let mut unknown = None;
    for flow in flows.iter_mut() {
        let DeValue::Table(flow) = flow.get_mut() else { continue };
        let Some(DeValue::Table(tcp)) = flow.get_mut("tcp").map(Spanned::get_mut) else { continue };
        let Some(name) = tcp.get("preset") else { continue };
        let span = name.span();
        let Some((_, keys)) = PRESETS.iter().find(|(known, _)| name.get_ref().as_str() == Some(known)) else {
            unknown = Some(span);
            break;
        };
        tcp.remove("preset");
        for (key, value) in DeTable::parse(keys).map(Spanned::into_inner).unwrap_or_default() {
            if tcp.get(key.get_ref().as_ref()).is_none() {
                let place = |inner| Spanned::new(span.clone(), inner);
                tcp.insert(Spanned::new(span.clone(), key.into_inner()), place(value.into_inner()));
            }
        }
    }
    match unknown {
        Some(span) => {
            let names = PRESETS.map(|(name, _)| name).join(", ");
            Err(place.error(span, format!("no such preset; there are: {names}")))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use lastmile::units::Bytes;

    use crate::network::tcp::TcpConfig;
    use crate::scenario::{Override, Scenario};

    fn tcp(options: &str, overrides: &[Override]) -> Result<TcpConfig, String> {
        let text = format!(
            "name = \"x\"\nduration = \"1 s\"\n[host.a]\n[host.b]\n[[link]]\nfrom = \"a\"\nto = \"b\"\ndelay = \"1 ms\"\n[[traffic]]\n\
             kind = \"ftp\"\nfrom = \"a\"\nto = \"b\"\ntcp = {options}\n"
        );
        let scenario = Scenario::parse_with("x", &text, overrides, &|_| Ok(())).map_err(|e| e.to_string())?;
        Ok(scenario.traffic[0].tcp.clone().unwrap().config)
    }

    #[test]
    fn a_preset_fills_what_is_not_said() {
        assert_eq!(tcp("{ preset = \"ns2\" }", &[]), Ok(TcpConfig::ns2()));
        let linux = tcp("{ segment = \"500 B\", preset = \"linux\" }", &[]).unwrap();
        assert_eq!((linux.segment, linux.initial_window), (Bytes(500), Some(10)));
        let swept = Override::new("traffic.0.tcp.preset", "ns2");
        assert_eq!(tcp("{ preset = \"linux\" }", &[swept]), Ok(TcpConfig::ns2()));
    }

    #[test]
    fn what_is_no_preset_is_named_with_those_there_are() {
        for wrong in ["\"bsd\"", "2"] {
            let said = tcp(&format!("{{ preset = {wrong} }}"), &[]).unwrap_err();
            assert_eq!(said, "x:13: traffic[0].tcp.preset: no such preset; there are: linux, ns2");
        }
        let said = tcp("{ preset = \"linux\", max_rto = \"100 ms\" }", &[]).unwrap_err();
        assert!(said.starts_with("x:13: traffic[0].tcp.max_rto: it is not below min_rto"), "{said}");
    }
}
