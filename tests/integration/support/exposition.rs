//! A strict reader of the Prometheus text format (0.0.4): what it doesn't allow is an error here,
//! though a lenient scraper might take it.

use std::collections::{BTreeMap, BTreeSet};

/// A sample's labels, by name.
pub(crate) type Labels = BTreeMap<String, String>;

/// One line with a value.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sample {
    pub(crate) name: String,
    pub(crate) labels: Labels,
    pub(crate) value: f64,
}

/// A metric: its type, its help, its samples.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Family {
    pub(crate) kind: String,
    pub(crate) help: String,
    pub(crate) samples: Vec<Sample>,
}

/// Everything that was scraped at once.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Exposition(pub(crate) BTreeMap<String, Family>);

impl Exposition {
    /// Reads a page.
    ///
    /// # Errors
    /// The first line that breaks a rule, and the rule.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let text = text.strip_suffix('\n').ok_or("the last line has no end")?;
        let mut families = BTreeMap::<String, Family>::new();
        let mut current: Option<(String, Family)> = None;
        for (index, line) in text.split('\n').enumerate() {
            let read = match line.strip_prefix("# ") {
                Some(meta) => read_meta(meta, &mut current, &mut families),
                None => read_sample(line, &mut current),
            };
            read.map_err(|rule| format!("line {}: {rule}: {line}", index + 1))?;
        }
        end_family(current.take(), &mut families)?;
        Ok(Self(families))
    }

    /// The value of the one sample with exactly these labels; none where it isn't there.
    pub(crate) fn value(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let wanted: Labels = labels
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect();
        let mut samples = self.0.values().flat_map(|family| &family.samples);
        samples
            .find(|sample| sample.name == name && sample.labels == wanted)
            .map(|sample| sample.value)
    }
}

/// A HELP line begins a family, the TYPE line follows it, then its samples and nothing else.
fn read_meta(
    meta: &str,
    current: &mut Option<(String, Family)>,
    families: &mut BTreeMap<String, Family>,
) -> Result<(), String> {
    let mut words = meta.splitn(3, ' ');
    let (keyword, name, rest) = (words.next(), words.next(), words.next());
    let (name, rest) = (name.ok_or("no name")?, rest.unwrap_or(""));
    check_name(name, ':')?;
    match keyword {
        Some("HELP") => {
            end_family(current.take(), families)?;
            let help = unescape(rest, false)?;
            *current = Some((
                name.to_owned(),
                Family {
                    kind: String::new(),
                    help,
                    samples: Vec::new(),
                },
            ));
            Ok(())
        }
        Some("TYPE") => match current {
            Some((known, family)) if known == name && family.kind.is_empty() => {
                let kinds = ["counter", "gauge", "histogram", "summary", "untyped"];
                if !kinds.contains(&rest) {
                    return Err("no such type".to_owned());
                }
                rest.clone_into(&mut family.kind);
                Ok(())
            }
            _ => Err("a TYPE follows its HELP, once".to_owned()),
        },
        _ => Err("only HELP and TYPE are written here".to_owned()),
    }
}

fn read_sample(line: &str, current: &mut Option<(String, Family)>) -> Result<(), String> {
    let (name, family) = current.as_mut().ok_or("a sample without HELP and TYPE")?;
    if family.kind.is_empty() {
        return Err("a sample before its TYPE".to_owned());
    }
    let end = line.find(['{', ' ']).ok_or("no value")?;
    let (sample_name, rest) = line.split_at(end);
    check_name(sample_name, ':')?;
    let suffixes: &[&str] = match family.kind.as_str() {
        "histogram" => &["_bucket", "_sum", "_count"],
        "summary" => &["", "_sum", "_count"],
        _ => &[""],
    };
    let suffix = sample_name.strip_prefix(name.as_str());
    if !suffix.is_some_and(|suffix| suffixes.contains(&suffix)) {
        return Err(format!("a sample of another metric than {name}"));
    }
    let (labels, rest) = read_labels(rest)?;
    let mut words = rest
        .strip_prefix(' ')
        .ok_or("no blank before the value")?
        .split(' ');
    let value = number(words.next().unwrap_or(""))?;
    if let Some(time) = words.next() {
        time.parse::<i64>()
            .map_err(|_| "the timestamp is no whole number")?;
    }
    if words.next().is_some() {
        return Err("more than value and timestamp".to_owned());
    }
    family.samples.push(Sample {
        name: sample_name.to_owned(),
        labels,
        value,
    });
    Ok(())
}

fn read_labels(text: &str) -> Result<(Labels, &str), String> {
    let mut labels = Labels::new();
    let Some(mut rest) = text.strip_prefix('{') else {
        return Ok((labels, text));
    };
    loop {
        if let Some(after) = rest.strip_prefix('}') {
            return Ok((labels, after));
        }
        let (name, after) = rest.split_once("=\"").ok_or("a label without value")?;
        check_name(name, '_')?;
        let end = closing_quote(after).ok_or("a label's value without end")?;
        let value = unescape(&after[..end], true)?;
        if labels.insert(name.to_owned(), value).is_some() {
            return Err(format!("the label {name} twice"));
        }
        rest = &after[end + 1..];
        rest = match rest.strip_prefix(',') {
            Some(next) => next,
            None if rest.starts_with('}') => rest,
            None => return Err("no comma between labels".to_owned()),
        };
    }
}

/// Where a quoted text ends.
fn closing_quote(text: &str) -> Option<usize> {
    let mut escaped = false;
    text.char_indices()
        .find(|(_, character)| {
            let ends = *character == '"' && !escaped;
            escaped = *character == '\\' && !escaped;
            ends
        })
        .map(|(index, _)| index)
}

fn unescape(text: &str, quoted: bool) -> Result<String, String> {
    let mut plain = String::new();
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        plain.push(match character {
            '\\' => match characters.next() {
                Some('\\') => '\\',
                Some('n') => '\n',
                Some('"') if quoted => '"',
                _ => return Err("no such escape".to_owned()),
            },
            other => other,
        });
    }
    Ok(plain)
}

/// A name begins with a letter or underscore; digits may follow, and in metrics colons.
fn check_name(name: &str, extra: char) -> Result<(), String> {
    let begins = |character: char| character.is_ascii_alphabetic() || character == '_';
    let goes_on =
        |character: char| begins(character) || character.is_ascii_digit() || character == extra;
    if name.starts_with(begins) && name.chars().all(goes_on) {
        Ok(())
    } else {
        Err(format!("'{name}' is no name"))
    }
}

fn number(text: &str) -> Result<f64, String> {
    match text {
        "+Inf" => Ok(f64::INFINITY),
        "-Inf" => Ok(f64::NEG_INFINITY),
        "NaN" => Ok(f64::NAN),
        // What Rust takes and the format doesn't: words for infinity, a plus sign.
        other if other.starts_with(|first: char| first == '-' || first.is_ascii_digit()) => {
            other.parse().map_err(|_| format!("'{other}' is no number"))
        }
        other => Err(format!("'{other}' is no number")),
    }
}

/// Judges a family as a whole, and keeps it.
fn end_family(
    family: Option<(String, Family)>,
    families: &mut BTreeMap<String, Family>,
) -> Result<(), String> {
    let Some((name, family)) = family else {
        return Ok(());
    };
    let mut seen = BTreeSet::new();
    for sample in &family.samples {
        if !seen.insert((&sample.name, &sample.labels)) {
            return Err(format!(
                "{name}: the same sample twice: {:?}",
                sample.labels
            ));
        }
        if family.kind == "counter" && (sample.value.is_nan() || sample.value < 0.0) {
            return Err(format!("{name}: a counter below zero"));
        }
    }
    if family.samples.is_empty() {
        return Err(format!("{name}: no sample"));
    }
    if family.kind == "histogram" {
        check_histogram(&family).map_err(|rule| format!("{name}: {rule}"))?;
    }
    match families.insert(name.clone(), family) {
        None => Ok(()),
        Some(_) => Err(format!("{name}: in two places")),
    }
}

/// For each set of labels: buckets that rise to `+Inf`, which is the count, and a sum.
fn check_histogram(family: &Family) -> Result<(), String> {
    let mut buckets = BTreeMap::<Labels, Vec<(f64, f64)>>::new();
    let mut others = BTreeMap::<Labels, Vec<(&str, f64)>>::new();
    for sample in &family.samples {
        let mut labels = sample.labels.clone();
        if sample.name.ends_with("_bucket") {
            let bound = labels.remove("le").ok_or("a bucket without bound")?;
            let place = buckets.entry(labels).or_default();
            place.push((number(&bound)?, sample.value));
        } else {
            let place = others.entry(labels).or_default();
            place.push((&sample.name, sample.value));
        }
    }
    if !buckets.keys().eq(others.keys()) {
        return Err("buckets without sum and count, or the other way".to_owned());
    }
    for (labels, buckets) in &buckets {
        let rise = |pair: &[(f64, f64)]| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1;
        if !buckets.windows(2).all(rise) {
            return Err("its buckets don't rise".to_owned());
        }
        let (bound, all) = buckets[buckets.len() - 1];
        let others = &others[labels];
        let count = others.iter().find(|(name, _)| name.ends_with("_count"));
        let has_sum = others.iter().any(|(name, _)| name.ends_with("_sum"));
        let fits = bound == f64::INFINITY && count.is_some_and(|(_, count)| *count == all);
        if !fits || !has_sum || others.len() != 2 {
            return Err("its last bucket is not the count".to_owned());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOUND: &str = "# HELP c_total Counts \\\\ things.\n# TYPE c_total counter\n\
                         c_total{a=\"x\\\"y\",b=\"\"} 3\nc_total 1e3 1700000000000\n\
                         # HELP h How long.\n# TYPE h histogram\n\
                         h_bucket{le=\"0.5\"} 1\nh_bucket{le=\"+Inf\"} 2\nh_sum 1.5\nh_count 2\n";

    #[test]
    fn a_sound_page_is_read() {
        let page = Exposition::parse(SOUND).unwrap();
        let labels = [("a", "x\"y"), ("b", "")];
        assert_eq!(page.value("c_total", &labels), Some(3.0));
        assert_eq!(page.value("c_total", &[]), Some(1000.0));
        assert_eq!(page.value("h_bucket", &[("le", "0.5")]), Some(1.0));
        assert_eq!(page.0["c_total"].help, "Counts \\ things.");
        assert_eq!(page.value("c_total", &[("a", "x\"y")]), None);
    }

    #[test]
    fn a_page_that_breaks_a_rule_is_refused() {
        let counter = |samples: &str| format!("# HELP c C.\n# TYPE c counter\n{samples}");
        let histogram = |samples: &str| format!("# HELP h H.\n# TYPE h histogram\n{samples}");
        for (rule, page) in [
            ("end of the last line", counter("c 1")),
            ("empty line", counter("c 1\n\n")),
            ("sample before TYPE", "# HELP c C.\nc 1\n".to_owned()),
            ("no meta", "c 1\n".to_owned()),
            ("type", "# HELP c C.\n# TYPE c number\nc 1\n".to_owned()),
            ("TYPE twice", counter("# TYPE c counter\nc 1\n")),
            ("no sample", counter("")),
            ("another metric", counter("d 1\n")),
            ("value", counter("c x\n")),
            ("no value", counter("c\n")),
            ("infinity", counter("c inf\n")),
            ("below zero", counter("c -1\n")),
            ("two blanks", counter("c  1\n")),
            ("timestamp", counter("c 1 x\n")),
            ("label name", counter("c{1a=\"x\"} 1\n")),
            ("label quotes", counter("c{a=x} 1\n")),
            ("label end", counter("c{a=\"x} 1\n")),
            ("label comma", counter("c{a=\"x\"b=\"y\"} 1\n")),
            ("label twice", counter("c{a=\"x\",a=\"y\"} 1\n")),
            ("escape", counter("c{a=\"\\t\"} 1\n")),
            ("sample twice", counter("c{a=\"x\"} 1\nc{a=\"x\"} 2\n")),
            ("in two places", format!("{SOUND}{}", SOUND)),
            ("bound", histogram("h_bucket 1\nh_sum 1\nh_count 1\n")),
            ("no buckets", histogram("h_sum 1\nh_count 1\n")),
            (
                "no infinity",
                histogram("h_bucket{le=\"1\"} 1\nh_sum 1\nh_count 1\n"),
            ),
            (
                "count",
                histogram("h_bucket{le=\"+Inf\"} 1\nh_sum 1\nh_count 2\n"),
            ),
            (
                "rise",
                histogram("h_bucket{le=\"1\"} 2\nh_bucket{le=\"+Inf\"} 1\nh_sum 1\nh_count 1\n"),
            ),
        ] {
            assert!(Exposition::parse(&page).is_err(), "{rule}: {page}");
        }
    }
}
