//! JUnit XML in the Jenkins flavour: one test case for each subject, so that a dashboard counts what was checked.

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use super::{Finding, Findings, Outcome};

/// The findings as one test suite. A subject that failed carries its findings as the failure's text, one that could
/// not be checked is an error, one that passed keeps what was noted in `system-out`. Characters that XML forbids are
/// escaped.
///
/// # Errors
/// The XML writer's own, as text.
pub fn junit(all: &Findings) -> Result<String, String> {
    let all = &all.plain();
    let name = format!("lastcall {}", all.command);
    let sorted = all.worst_first();
    let mut suite = TestSuite::new(name.as_str());
    for subject in &all.subjects {
        let text: String = sorted.iter().filter(|f| f.subject == subject.name).map(|f| line(f)).collect();
        let status = match &subject.outcome {
            Outcome::Passed => TestCaseStatus::success(),
            Outcome::Failed { kind, message } => {
                let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
                status.set_type(kind.as_str()).set_message(message.as_str()).set_description(text.as_str());
                status
            }
            Outcome::CouldNotRun { message } => {
                let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
                status.set_type("could_not_run").set_message(message.as_str());
                status
            }
        };
        let passed = matches!(subject.outcome, Outcome::Passed);
        let mut case = TestCase::new(subject.name.as_str(), status);
        let file = crate::plain(&subject.file);
        case.set_classname(if file.is_empty() { name.as_str() } else { file.as_str() });
        if passed && !text.is_empty() {
            case.set_system_out(text.as_str());
        }
        suite.add_test_case(case);
    }
    let mut report = Report::new(name.as_str());
    report.add_test_suite(suite);
    report.to_string().map_err(|e| e.to_string())
}

fn line(finding: &Finding) -> String {
    let at = match finding.pointer.as_str() {
        "" => String::new(),
        pointer => format!(" at {}", crate::plain(pointer)),
    };
    format!("{} {}{at}: {}\n", finding.level.as_str(), finding.rule, finding.full_message())
}
