//! How a verdict is shown: text, JSON and HTML with inline SVG.
