//! Regular expressions: which engine they need, how long they may take, what they really say.

use regex_syntax::ast::{self, Ast, RepetitionKind, RepetitionRange};
use regex_syntax::hir::Look;

use super::nodes::{Node, Read};
use super::rules::RuleId as R;
use super::{Report, shown};

pub(super) fn check(read: &Read<'_>, report: &mut Report<'_>) {
    for node in &read.nodes {
        if let Some(pattern) = node.text("pattern") {
            one(pattern, &format!("{}/pattern", node.pointer), true, report);
        }
        for pattern in keys(node) {
            let at = format!("{}/patternProperties/{}", node.pointer, crate::pointer::escape(pattern));
            one(pattern, &at, false, report);
        }
    }
}

fn keys<'a>(node: &Node<'a>) -> impl Iterator<Item = &'a str> + use<'a> {
    node.map
        .get("patternProperties")
        .and_then(|v| v.as_object())
        .into_iter()
        .flatten()
        .map(|(k, _)| k.as_str())
}

fn one(pattern: &str, at: &str, value: bool, report: &mut Report<'_>) {
    let text = shown(&pattern.into());
    if let Some(what) = foreign(pattern) {
        report.add(R::PatternNotEcma, at, format!("{text} uses {what}, which ECMA-262 does not have"));
    }
    match ast::parse::Parser::new().parse(pattern) {
        Ok(tree) => {
            if nested(&tree, false) {
                report.add(R::PatternNestedRepeat, at, format!("{text} repeats a repetition"));
            }
        }
        Err(error) => {
            use ast::ErrorKind as K;
            if matches!(error.kind(), K::UnsupportedLookAround | K::UnsupportedBackreference) {
                let what = if matches!(error.kind(), K::UnsupportedLookAround) {
                    "looks ahead or behind"
                } else {
                    "refers back"
                };
                report.add(R::PatternBacktracks, at, format!("{text} {what}: its time cannot be bounded"));
            }
            return;
        }
    }
    if let Ok(hir) = regex_syntax::parse(pattern)
        && value
    {
        let looks = hir.properties();
        if !looks.look_set_prefix().contains(Look::Start) || !looks.look_set_suffix().contains(Look::End) {
            report.add(R::PatternUnanchored, at, format!("{text} matches anywhere in the text"));
        }
    }
}

/// Syntax that ECMA-262 has not.
fn foreign(pattern: &str) -> Option<&'static str> {
    let flags = pattern
        .match_indices("(?")
        .any(|(at, _)| pattern[at + 2..].starts_with(['i', 'm', 's', 'x', 'u', 'U', 'P', '#', '>']));
    let bare = pattern.replace("\\\\", "");
    if flags {
        Some("inline flags, a comment, an atomic group or `(?P`")
    } else if ["\\A", "\\Z", "\\z", "\\h", "\\G"].iter().any(|e| bare.contains(e)) {
        Some("an anchor or class of Perl")
    } else if bare.contains("[[:") {
        Some("a POSIX class")
    } else if ["++", "*+", "?+", "}+"].iter().any(|q| bare.replace("\\+", "").contains(q))
        && !bare.contains('[')
    {
        Some("a possessive quantifier")
    } else {
        None
    }
}

fn unbounded(repetition: &ast::Repetition) -> bool {
    match &repetition.op.kind {
        RepetitionKind::ZeroOrMore | RepetitionKind::OneOrMore => true,
        RepetitionKind::Range(RepetitionRange::AtLeast(_)) => true,
        RepetitionKind::Range(RepetitionRange::Bounded(_, most)) => *most > 50,
        _ => false,
    }
}

/// Whether an unbounded repetition has another one as all that it must match. `inside`: under a repetition already.
fn nested(tree: &Ast, inside: bool) -> bool {
    match tree {
        Ast::Repetition(repetition) => {
            let own = unbounded(repetition);
            (own && inside) || nested(&repetition.ast, own || inside)
        }
        Ast::Group(group) => nested(&group.ast, inside),
        Ast::Alternation(parts) => parts.asts.iter().any(|p| nested(p, inside)),
        Ast::Concat(parts) => {
            // `(a+,)*` is told apart by the comma; `(a*b?)*` by nothing
            let must = |p: &Ast| !can_be_empty(p) && !matches!(p, Ast::Repetition(r) if unbounded(r));
            let separated = parts.asts.iter().any(must);
            parts.asts.iter().any(|p| nested(p, inside && !separated))
        }
        _ => false,
    }
}

fn can_be_empty(tree: &Ast) -> bool {
    match tree {
        Ast::Empty(_) | Ast::Flags(_) | Ast::Assertion(_) => true,
        Ast::Repetition(r) => match &r.op.kind {
            RepetitionKind::ZeroOrMore | RepetitionKind::ZeroOrOne => true,
            RepetitionKind::OneOrMore => can_be_empty(&r.ast),
            RepetitionKind::Range(range) => {
                let least = match range {
                    RepetitionRange::Exactly(n)
                    | RepetitionRange::AtLeast(n)
                    | RepetitionRange::Bounded(n, _) => *n,
                };
                least == 0 || can_be_empty(&r.ast)
            }
        },
        Ast::Group(group) => can_be_empty(&group.ast),
        Ast::Alternation(parts) => parts.asts.iter().any(can_be_empty),
        Ast::Concat(parts) => parts.asts.iter().all(can_be_empty),
        _ => false,
    }
}
