//! Path patterns: what a template such as `/account/{id}/state/{version}` matches, and whether
//! two of them can match the same path.

use std::fmt;

/// The verb of a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Verb {
    /// `GET`, which answers `HEAD` too.
    Get,
    /// `POST`
    Post,
    /// `PUT`
    Put,
    /// `PATCH`
    Patch,
    /// `DELETE`
    Delete,
}

impl Verb {
    /// The verb as it stands in a request.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }

    /// The verb of a request; none where no route can have it.
    pub(crate) fn of(method: &actix_web::http::Method) -> Option<Self> {
        match method.as_str() {
            "GET" | "HEAD" => Some(Self::Get),
            "POST" => Some(Self::Post),
            "PUT" => Some(Self::Put),
            "PATCH" => Some(Self::Patch),
            "DELETE" => Some(Self::Delete),
            _ => None,
        }
    }
}

impl fmt::Display for Verb {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl From<wow_kernel::model::Method> for Verb {
    fn from(method: wow_kernel::model::Method) -> Self {
        use wow_kernel::model::Method;
        match method {
            Method::Post => Self::Post,
            Method::Put => Self::Put,
            Method::Patch => Self::Patch,
            Method::Delete => Self::Delete,
        }
    }
}

/// What a variable segment of a path holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Parameter {
    /// The tenant.
    Tenant,
    /// The owner.
    Owner,
    /// The space.
    Space,
    /// The aggregate's id.
    Id,
    /// A whole number, by its name in the template.
    Number(&'static str),
    /// A variable that a command declares, or the rest of a page's path.
    Named(String),
}

impl Parameter {
    /// Reads the name between the braces; the names of identity facts are fixed (spec/03).
    fn named(name: &str) -> Self {
        match name {
            "tenantId" => Self::Tenant,
            "ownerId" => Self::Owner,
            "spaceId" => Self::Space,
            "id" => Self::Id,
            _ => Self::Named(name.to_owned()),
        }
    }

    /// Its name in the template.
    pub fn name(&self) -> &str {
        match self {
            Self::Tenant => "tenantId",
            Self::Owner => "ownerId",
            Self::Space => "spaceId",
            Self::Id => "id",
            Self::Number(name) => name,
            Self::Named(name) => name,
        }
    }

    fn takes(&self, text: &str) -> bool {
        !matches!(self, Self::Number(_)) || text.bytes().all(|byte| byte.is_ascii_digit())
    }
}

/// One segment of a path pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Segment {
    Literal(String),
    Parameter(Parameter),
}

impl Segment {
    pub(crate) fn literal(text: impl Into<String>) -> Self {
        Self::Literal(text.into())
    }

    /// Reads declared text: a resource or an action, each perhaps of several segments.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub(crate) fn parse_all(text: &str) -> Result<Vec<Self>, String> {
        if text.is_empty() {
            return Ok(Vec::new());
        }
        text.split('/').map(Self::parse).collect()
    }

    fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("it has an empty path segment".to_owned());
        }
        if let Some(name) = text
            .strip_prefix('{')
            .and_then(|rest| rest.strip_suffix('}'))
        {
            if name.is_empty() || name.contains(['{', '}']) {
                return Err(format!("'{text}' is no variable"));
            }
            return Ok(Self::Parameter(Parameter::named(name)));
        }
        if text.contains(['{', '}', '?', '#', '%']) || text.contains(char::is_whitespace) {
            return Err(format!(
                "'{text}' can't be a path segment: a variable takes a whole segment, and '?', '#', \
                 '%' and blanks are not allowed"
            ));
        }
        Ok(Self::Literal(text.to_owned()))
    }
}

/// The template of a pattern, as documents show it.
pub(crate) fn template(segments: &[Segment]) -> String {
    let mut path = String::new();
    for segment in segments {
        path.push('/');
        match segment {
            Segment::Literal(text) => path.push_str(text),
            Segment::Parameter(parameter) => {
                path.push('{');
                path.push_str(parameter.name());
                path.push('}');
            }
        }
    }
    path
}

/// How one pattern stands to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Overlap {
    /// No path matches both.
    None,
    /// They match the same paths.
    Same,
    /// All paths of the one match the other too: it has literals where the other takes anything.
    Narrower,
    /// The other way round.
    Wider,
    /// Some path matches both, and neither is the more literal one.
    Crossed,
}

/// Compares two patterns.
pub(crate) fn overlap(one: &[Segment], other: &[Segment]) -> Overlap {
    if one.len() != other.len() {
        return Overlap::None;
    }
    let (mut narrower, mut wider) = (false, false);
    for pair in one.iter().zip(other) {
        match pair {
            (Segment::Literal(left), Segment::Literal(right)) if left != right => {
                return Overlap::None;
            }
            (Segment::Literal(text), Segment::Parameter(parameter))
            | (Segment::Parameter(parameter), Segment::Literal(text))
                if !parameter.takes(text) =>
            {
                return Overlap::None;
            }
            (Segment::Literal(_), Segment::Parameter(_)) => narrower = true,
            (Segment::Parameter(_), Segment::Literal(_)) => wider = true,
            _ => {}
        }
    }
    match (narrower, wider) {
        (false, false) => Overlap::Same,
        (true, false) => Overlap::Narrower,
        (false, true) => Overlap::Wider,
        (true, true) => Overlap::Crossed,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "tests")]
mod tests {
    use super::*;

    fn pattern(text: &str) -> Vec<Segment> {
        Segment::parse_all(text).unwrap()
    }

    #[test]
    fn a_template_reads_back_as_it_was_written() {
        assert_eq!(template(&pattern("a/{id}/b/{other}")), "/a/{id}/b/{other}");
        assert_eq!(template(&pattern("")), "");
    }

    #[test]
    fn a_declared_path_that_no_request_could_name_is_refused() {
        for bad in [
            "a//b", "/a", "a/", "{}", "x{id}", "{a}{b}", "a b", "a?b", "a%20b",
        ] {
            assert!(Segment::parse_all(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn patterns_overlap_where_one_path_fits_both() {
        for (one, other, expected) in [
            ("a/{id}", "a/{name}", Overlap::Same),
            ("a/{id}", "a/new", Overlap::Wider),
            ("a/new", "a/{id}", Overlap::Narrower),
            ("a/{id}", "b/{id}", Overlap::None),
            ("a/{id}", "a/{id}/b", Overlap::None),
            ("a/{id}/x", "a/y/{z}", Overlap::Crossed),
        ] {
            assert_eq!(
                overlap(&pattern(one), &pattern(other)),
                expected,
                "{one} {other}"
            );
        }
        let version = [
            Segment::literal("a"),
            Segment::Parameter(Parameter::Number("version")),
        ];
        assert_eq!(overlap(&version, &pattern("a/tracing")), Overlap::None);
    }
}
