//! Verdicts as JUnit XML in the Jenkins flavour: a suite a tool, a case a check.

use lastcall_decision::{Answer, Check, CheckResult, Verdict};
use quick_junit::{NonSuccessKind, Property, Report, TestCase, TestCaseStatus, TestSuite};

use super::leading;
use crate::plain;

/// The verdicts as one report. In each suite a case `verdict` comes first, and succeeds for READY alone: a dashboard that
/// counts cases takes what nobody can say yet for no good news. A check that fails is a failure, one that could not be
/// computed an error, one that lacks evidence or was not asked is skipped.
///
/// # Errors
/// The XML writer's own, as text.
pub fn verdicts_junit(verdicts: &[Verdict]) -> Result<String, String> {
    let mut report = Report::new("lastcall decide");
    for v in verdicts {
        report.add_test_suite(suite(v));
    }
    report.to_string().map_err(|e| e.to_string())
}

fn suite(v: &Verdict) -> TestSuite {
    let cohort = v.registration.as_ref().and_then(|r| r.cohort.as_deref());
    let tool = plain(&v.tool_id);
    let name = cohort.map_or_else(|| tool.clone(), |c| format!("{tool} [{}]", plain(c)));
    let mut suite = TestSuite::new(name.as_str());
    let class = format!("lastcall decide.{}.{name}", v.question.as_str());
    let mut properties =
        vec![("question", v.question.as_str().to_owned()), ("verdict", v.verdict.as_str().to_owned())];
    if let Some(p) = &v.pair {
        properties.push(("current", plain(&p.current)));
        properties.push(("candidate", plain(&p.candidate)));
    }
    if let Some(last) = v.window.as_ref().and_then(|w| w.closed_through) {
        properties.push(("closed_through", last.to_string()));
    }
    for (name, value) in properties {
        suite.add_property(Property::new(name, value));
    }
    let mut case = |name: &str, status: TestCaseStatus, out: Option<String>| {
        let mut case = TestCase::new(name, status);
        case.set_classname(class.as_str());
        if let Some(out) = out {
            case.set_system_out(out);
        }
        suite.add_test_case(case);
    };
    case("verdict", answer(v), Some(plain(&v.headline)));
    for p in &v.problems {
        let next = p.next.as_deref().map_or(String::new(), |n| format!("next: {}\n", plain(n)));
        case(p.reason.as_str(), status(p.result, p.reason.as_str(), &plain(&p.text), &next), None);
    }
    for c in &v.checks {
        let passes = c.result == CheckResult::Pass;
        let told = told(c);
        let status = status(c.result, c.reason.as_str(), &plain(&c.text), &told);
        case(&plain(&c.id), status, passes.then_some(told));
    }
    suite
}

fn answer(v: &Verdict) -> TestCaseStatus {
    let kind = match v.verdict {
        Answer::Ready => return TestCaseStatus::success(),
        Answer::NotReady | Answer::Insufficient => NonSuccessKind::Failure,
        Answer::Error => NonSuccessKind::Error,
    };
    let mut status = TestCaseStatus::non_success(kind);
    let reason = leading(v).0.map_or(String::new(), |code| format!("reason: {code}\n"));
    let next = v.next.as_deref().map_or(String::new(), |n| format!("next: {}\n", plain(n)));
    status
        .set_type(v.verdict.as_str())
        .set_message(plain(&v.headline))
        .set_description(format!("{reason}{next}"));
    status
}

fn status(result: CheckResult, code: &str, message: &str, told: &str) -> TestCaseStatus {
    let mut status = match result {
        CheckResult::Pass => return TestCaseStatus::success(),
        CheckResult::Fail => TestCaseStatus::non_success(NonSuccessKind::Failure),
        CheckResult::Error => TestCaseStatus::non_success(NonSuccessKind::Error),
        CheckResult::Insufficient | CheckResult::Unknown => TestCaseStatus::skipped(),
    };
    status.set_type(code).set_message(message).set_description(told);
    status
}

fn told(c: &Check) -> String {
    let next = c.next.as_deref().map_or(String::new(), |n| format!("next: {}\n", plain(n)));
    format!(
        "{}: {}\nasked: {}\nrule: {}\nreason: {}\n{next}",
        c.result.as_str(),
        plain(&c.value),
        plain(&c.threshold),
        plain(&c.formula),
        c.reason
    )
}
