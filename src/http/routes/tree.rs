//! The tree that finds a route by its path: one step a segment, literals before variables, no
//! regular expression.

use std::borrow::Cow;
use std::collections::HashMap;
use std::mem;

use percent_encoding::percent_decode_str;

use super::pattern::{Segment, Verb};

/// More segments than any route has; a longer path is answered without looking further.
const SEGMENTS_MAX: usize = 32;

#[derive(Debug, Default)]
struct Node {
    literals: HashMap<String, Node>,
    parameter: Option<Box<Node>>,
    routes: Vec<(Verb, usize)>,
}

/// Routes by path and verb.
#[derive(Debug, Default)]
pub(super) struct Tree {
    root: Node,
}

/// What a path and a verb lead to.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Found<'p, R> {
    /// A route, and the text of its variable segments, in order.
    Route(R, Vec<Cow<'p, str>>),
    /// The path is known with these verbs only.
    WrongVerb(Vec<Verb>),
    /// No route has this path.
    Nothing,
    /// The path is badly percent-encoded, or isn't UTF-8 once it is decoded.
    Unreadable,
}

impl Tree {
    /// Adds a route, known by a number.
    pub(super) fn add(&mut self, segments: &[Segment], verb: Verb, route: usize) {
        let mut node = &mut self.root;
        for segment in segments {
            node = match segment {
                Segment::Literal(text) => node.literals.entry(text.clone()).or_default(),
                Segment::Parameter(_) => node.parameter.get_or_insert_default(),
            };
        }
        node.routes.push((verb, route));
    }

    /// Finds the route of a path as it stands in the request, still percent-encoded.
    pub(super) fn find<'p>(&self, path: &'p str, verb: Option<Verb>) -> Found<'p, usize> {
        // Before anything else, so that it doesn't depend on which routes there are.
        if !is_well_encoded(path) {
            return Found::Unreadable;
        }
        let path = path.strip_prefix('/').unwrap_or(path);
        if path.is_empty() || path.split('/').nth(SEGMENTS_MAX).is_some() {
            return Found::Nothing;
        }
        let mut segments = Vec::with_capacity(8);
        for segment in path.split('/') {
            match percent_decode_str(segment).decode_utf8() {
                Ok(text) => segments.push(text),
                Err(_) => return Found::Unreadable,
            }
        }
        let mut search = Search {
            segments: &segments,
            verb,
            verbs: Vec::new(),
        };
        let mut places = Vec::with_capacity(4);
        match search.walk(&self.root, 0, &mut places) {
            Some(route) => {
                let values = places
                    .into_iter()
                    .map(|place| mem::take(&mut segments[place]));
                Found::Route(route, values.collect())
            }
            None if search.verbs.is_empty() => Found::Nothing,
            None => {
                let mut verbs = search.verbs;
                verbs.sort_unstable();
                verbs.dedup();
                Found::WrongVerb(verbs)
            }
        }
    }
}

/// Whether two hexadecimal digits follow every `%`; a lone one would be taken for itself.
fn is_well_encoded(path: &str) -> bool {
    let mut parts = path.split('%');
    parts.next();
    let is_code =
        |part: &[u8]| matches!(part, [a, b, ..] if [a, b].iter().all(|c| c.is_ascii_hexdigit()));
    parts.all(|part| is_code(part.as_bytes())) && percent_decode_str(path).decode_utf8().is_ok()
}

struct Search<'s, 'p> {
    segments: &'s [Cow<'p, str>],
    verb: Option<Verb>,
    verbs: Vec<Verb>,
}

impl Search<'_, '_> {
    /// Goes down the tree; `places` says which segments stood for variables so far.
    fn walk(&mut self, node: &Node, depth: usize, places: &mut Vec<usize>) -> Option<usize> {
        let Some(segment) = self.segments.get(depth) else {
            return self.at_end(node);
        };
        if let Some(next) = node.literals.get(&**segment)
            && let Some(route) = self.walk(next, depth + 1, places)
        {
            return Some(route);
        }
        let next = node.parameter.as_deref()?;
        places.push(depth);
        let route = self.walk(next, depth + 1, places);
        if route.is_none() {
            places.pop();
        }
        route
    }

    fn at_end(&mut self, node: &Node) -> Option<usize> {
        let found = node
            .routes
            .iter()
            .find(|(verb, _)| self.verb == Some(*verb));
        if found.is_none() {
            self.verbs.extend(node.routes.iter().map(|(verb, _)| *verb));
        }
        found.map(|(_, route)| *route)
    }
}
