//! Data-flow analysis: which inputs a template reads, and how they reach its output, without rendering it.
//!
//! Values are not known here, so every branch counts. A name that the template sets, even on one branch only, is its
//! own from there on. If the template reads the name before that, it is an input.

use std::collections::BTreeMap;

use crate::diagnostic::short;
use crate::template::tree::{
    Arg, Args, Block, CallExpr, Callee, Capture, Expr, ExprKind, For, Local, MacroDef, NamedArg, Node, Place, Section,
    Target, Tree, With,
};

/// How an input reaches a place: the assignments it went through, in order. Empty if the input is used directly.
pub(crate) type Path = Vec<String>;

/// A place where an input becomes output.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Sink {
    pub(crate) input: usize,
    pub(crate) place: Place,
    pub(crate) path: Path,
}

/// How a template uses its inputs.
#[derive(Debug, Default)]
pub(crate) struct Flow {
    /// The inputs that it reads, and the first place where each is read.
    pub(crate) uses: BTreeMap<usize, Place>,
    /// The first place where each input becomes output.
    pub(crate) sinks: Vec<Sink>,
}

/// The inputs that contributed to a value. At most [`MAX_TAINT`], because the result is read by people.
type Taint = BTreeMap<usize, Path>;

const MAX_TAINT: usize = 64;
const MAX_PATH: usize = 8;
/// Namespaces and macros can carry text backwards, which takes several passes. Longer chains than this are not
/// followed.
const MAX_PASSES: usize = 4;

/// The maximum number of taint entries that are copied in total. Without it, a template that often reads a value with
/// many inputs would make the analysis slow. Above it, all uses are still found, but not all sinks.
const MAX_COPIES: usize = 400_000;

/// Follows the inputs through a template.
pub(crate) fn analyse(tree: &Tree) -> Flow {
    let mut left = MAX_COPIES;
    let mut ever = vec![None; tree.frame_size];
    let mut attributes = BTreeMap::new();
    let mut flow = Flow::default();
    for _ in 0..MAX_PASSES {
        let before = (ever.clone(), attributes.clone());
        let frame = Frame { slots: vec![None; tree.frame_size], trail: Vec::new() };
        let mut pass = Pass {
            frames: vec![frame],
            ever: std::mem::take(&mut ever),
            attributes: std::mem::take(&mut attributes),
            outputs: Vec::new(),
            captured: Vec::new(),
            uses: BTreeMap::new(),
            sinks: BTreeMap::new(),
            left,
        };
        pass.block(&tree.body);
        left = pass.left;
        // A pass that ran out of copies knows less than the previous one.
        if left == 0 && !flow.uses.is_empty() {
            break;
        }
        flow = Flow { uses: pass.uses, sinks: pass.sinks.into_values().collect() };
        (ever, attributes) = (pass.ever, pass.attributes);
        if before == (ever.clone(), attributes.clone()) {
            break;
        }
    }
    flow.sinks.sort_by_key(|sink| (sink.place.start, sink.input));
    flow
}

/// The content of a slot: how it was bound, and the inputs that contributed to it.
#[derive(Debug, Clone, PartialEq)]
struct Slot {
    binding: &'static str,
    taint: Taint,
}

#[derive(Debug, Default)]
struct Frame {
    slots: Vec<Option<Slot>>,
    /// The previous value of each assigned slot, so that a branch can be undone.
    trail: Vec<(usize, Option<Slot>)>,
}

impl Frame {
    fn put(&mut self, slot: usize, value: Option<Slot>) {
        if slot >= self.slots.len() {
            self.slots.resize(slot + 1, None);
        }
        let before = std::mem::replace(&mut self.slots[slot], value);
        self.trail.push((slot, before));
    }

    fn get(&self, slot: usize) -> Option<&Slot> {
        self.slots.get(slot)?.as_ref()
    }

    /// Undoes all assignments since a mark, and returns the values that they had stored.
    fn undo(&mut self, mark: usize) -> Vec<(usize, Option<Slot>)> {
        let mut undone = Vec::new();
        while self.trail.len() > mark {
            let Some((slot, before)) = self.trail.pop() else { break };
            let after = std::mem::replace(&mut self.slots[slot], before);
            // The latest assignment comes first here, and it is the one that counts.
            undone.push((slot, after));
        }
        undone
    }
}

struct Pass {
    frames: Vec<Frame>,
    /// Everything that the slots of the template's own frame have ever held. A macro may run after a slot that it reads
    /// is set.
    ever: Vec<Option<Slot>>,
    /// Everything that attributes of namespaces have ever held, by the slot of the namespace.
    attributes: BTreeMap<usize, Taint>,
    /// The captured outputs that are being rendered, innermost last.
    outputs: Vec<Taint>,
    /// The captured texts whose filters are being analyzed.
    captured: Vec<Taint>,
    uses: BTreeMap<usize, Place>,
    sinks: BTreeMap<usize, Sink>,
    /// How many taint entries may still be copied.
    left: usize,
}

impl Pass {
    fn block(&mut self, block: &Block) {
        for node in block {
            self.node(node);
        }
    }

    fn node(&mut self, node: &Node) {
        match node {
            Node::Text(_) | Node::Break | Node::Continue => {}
            Node::Emit(expr) | Node::EmitWhole(expr) => {
                let taint = self.expr(expr);
                self.emit(taint, expr.place);
            }
            Node::If(branches, or_else) => self.branches(branches, or_else),
            Node::For(node) => self.for_loop(node),
            Node::With(node) => self.with(node),
            Node::Set(target, expr) => {
                let taint = self.expr(expr);
                self.assign(target, taint, "set");
            }
            Node::SetBlock(capture) | Node::FilterBlock(capture) => self.capture(capture),
            Node::AutoEscape(expr, body) => {
                self.expr(expr);
                self.block(body);
            }
            Node::Macro(slot, definition) => {
                let taint = self.call_body(definition);
                self.put(*slot, Slot { binding: "macro", taint });
            }
            Node::Do(expr) => drop(self.expr(expr)),
            Node::Section(section) => self.section(section),
        }
    }

    fn emit(&mut self, taint: Taint, place: Place) {
        if let Some(output) = self.outputs.last_mut() {
            return join(output, taint);
        }
        for (input, path) in taint {
            self.sinks.entry(input).or_insert(Sink { input, place, path });
        }
    }

    /// Analyzes branches. Any of them may be taken, so afterwards a slot may hold what any branch has set.
    fn branches(&mut self, branches: &[(Expr, Block)], or_else: &Block) {
        let mark = self.frame().trail.len();
        let mut set = Vec::new();
        for (condition, body) in branches {
            // A condition reads its inputs, but they do not become part of the text.
            self.expr(condition);
            self.block(body);
            set.extend(self.frame().undo(mark));
        }
        self.block(or_else);
        set.extend(self.frame().undo(mark));
        for (slot, value) in set {
            let Some(mut value) = value else { continue };
            let before = self.frames.last().and_then(|frame| frame.get(slot)).map(|before| &before.taint);
            join(&mut value.taint, copied(before, &mut self.left));
            self.put(slot, value);
        }
    }

    fn for_loop(&mut self, node: &For) {
        let taint = self.expr(&node.iter);
        for slot in node.own.clone() {
            self.frame().put(slot, None);
        }
        self.assign(&node.target, taint.clone(), "for");
        if let Some(slot) = node.loop_slot {
            self.put(slot, Slot { binding: "for", taint });
        }
        if let Some(filter) = &node.filter {
            self.expr(filter);
        }
        self.block(&node.body);
        self.block(&node.or_else);
    }

    fn with(&mut self, node: &With) {
        for slot in node.own.clone() {
            self.frame().put(slot, None);
        }
        for (target, value) in &node.assignments {
            let taint = self.expr(value);
            self.assign(target, taint, "with");
        }
        self.block(&node.body);
    }

    fn section(&mut self, section: &Section) {
        let taint = self.expr(&section.value);
        self.put(section.slot, Slot { binding: "section", taint });
        self.block(&section.body);
    }

    fn capture(&mut self, capture: &Capture) {
        let text = self.aside(&capture.body);
        self.captured.push(text);
        let taint = self.expr(&capture.filter);
        self.captured.pop();
        match &capture.target {
            Some(target) => self.assign(target, taint, "set"),
            None => self.emit(taint, capture.filter.place),
        }
    }

    /// Returns the taint of a block's output.
    fn aside(&mut self, body: &Block) -> Taint {
        self.outputs.push(Taint::new());
        self.block(body);
        self.outputs.pop().unwrap_or_default()
    }

    /// Returns the taint of a macro's own output. The taint of the arguments is added at each call.
    fn call_body(&mut self, definition: &MacroDef) -> Taint {
        let own = |taint| Some(Slot { binding: "macro", taint });
        let mut frame = Frame { slots: vec![None; definition.frame_size], trail: Vec::new() };
        for slot in 0..definition.params.len() {
            frame.put(slot, own(Taint::new()));
        }
        frame.put(definition.caller_slot, own(Taint::new()));
        for (outer, inner) in &definition.captures {
            let captured = self.frames.last().and_then(|frame| frame.get(*outer));
            let copy =
                captured.map(|slot| Slot { binding: slot.binding, taint: copied(Some(&slot.taint), &mut self.left) });
            frame.put(*inner, copy.or_else(|| own(Taint::new())));
        }
        self.frames.push(frame);
        for default in definition.params.iter().filter_map(|param| param.default.as_ref()) {
            self.expr(default);
        }
        let taint = self.aside(&definition.body);
        self.frames.pop();
        taint
    }

    fn assign(&mut self, target: &Target, taint: Taint, binding: &'static str) {
        match target {
            Target::Slot(slot) => self.put(*slot, Slot { binding, taint }),
            Target::Unpack(items, _) => {
                for item in items {
                    let taint = copied(Some(&taint), &mut self.left);
                    self.assign(item, taint, binding);
                }
            }
            Target::Attr(namespace, _) => {
                self.expr(namespace);
                let (slot, is_root) = match &namespace.kind {
                    ExprKind::Local(local) => (local.slot, self.frames.len() == 1),
                    ExprKind::Outer(local) => (local.slot, true),
                    _ => return,
                };
                if is_root {
                    join(self.attributes.entry(slot).or_default(), taint);
                } else if let Some(held) = self.frames.last().and_then(|frame| frame.get(slot)) {
                    let mut value = Slot { binding: held.binding, taint: copied(Some(&held.taint), &mut self.left) };
                    join(&mut value.taint, taint);
                    self.put(slot, value);
                }
            }
        }
    }

    fn put(&mut self, slot: usize, value: Slot) {
        if self.frames.len() == 1 {
            if slot >= self.ever.len() {
                self.ever.resize(slot + 1, None);
            }
            let taint = copied(Some(&value.taint), &mut self.left);
            match &mut self.ever[slot] {
                Some(ever) => join(&mut ever.taint, taint),
                ever @ None => *ever = Some(Slot { binding: value.binding, taint }),
            }
        }
        self.frame().put(slot, Some(value));
    }

    fn frame(&mut self) -> &mut Frame {
        self.frames.last_mut().expect("the template's own frame is never popped")
    }

    fn expr(&mut self, expr: &Expr) -> Taint {
        match &expr.kind {
            ExprKind::Const(_) | ExprKind::Function(_) | ExprKind::HostFunction => Taint::new(),
            ExprKind::Captured => copied(self.captured.last(), &mut self.left),
            ExprKind::Input(index) => self.input(*index, expr.place),
            ExprKind::Local(local) => self.local(local),
            ExprKind::Outer(local) => self.outer(local),
            ExprKind::Attr(value, _) | ExprKind::Not(value) | ExprKind::Neg(value) => self.expr(value),
            ExprKind::Item(a, b) | ExprKind::Binary(_, a, b) | ExprKind::And(a, b) | ExprKind::Or(a, b) => {
                self.all([&**a, &**b])
            }
            ExprKind::Slice(slice) => {
                let parts = [&slice.start, &slice.stop, &slice.step].into_iter().flatten();
                self.all(std::iter::once(&slice.value).chain(parts))
            }
            ExprKind::Concat(items) | ExprKind::List(items) | ExprKind::Tuple(items) => self.all(items),
            ExprKind::Chain(first, rest) => {
                self.all(std::iter::once(&**first).chain(rest.iter().map(|(_, operand)| operand)))
            }
            ExprKind::Ternary(ternary) => {
                self.expr(&ternary.condition);
                self.all(std::iter::once(&ternary.then).chain(&ternary.or_else))
            }
            ExprKind::Dict(pairs) => self.all(pairs.iter().flat_map(|(key, value)| [key, value])),
            ExprKind::Filter(named) | ExprKind::Test(named) => {
                let mut taint = self.expr(&named.value);
                join(&mut taint, self.args(&named.args));
                taint
            }
            ExprKind::Call(call) => self.call(call),
            ExprKind::Caller(definition) => self.call_body(definition),
            ExprKind::Lookup(lookup) => {
                let mut taint = Taint::new();
                for slot in 0..lookup.contexts {
                    let context = self.frames.last().and_then(|frame| frame.get(slot)).map(|slot| &slot.taint);
                    join(&mut taint, copied(context, &mut self.left));
                }
                if let Some(index) = lookup.input {
                    join(&mut taint, self.input(index, expr.place));
                }
                taint
            }
        }
    }

    fn all<'e>(&mut self, exprs: impl IntoIterator<Item = &'e Expr>) -> Taint {
        let mut taint = Taint::new();
        for expr in exprs {
            join(&mut taint, self.expr(expr));
        }
        taint
    }

    fn args(&mut self, args: &Args) -> Taint {
        let positional = args.positional.iter().map(|(Arg::One(expr) | Arg::All(expr))| expr);
        let named = args.named.iter().map(|(NamedArg::One(_, expr) | NamedArg::All(expr))| expr);
        self.all(positional.chain(named))
    }

    fn call(&mut self, call: &CallExpr) -> Taint {
        let (mut taint, step) = match &call.callee {
            Callee::Name(expr, name) => {
                let is_macro = !matches!(expr.kind, ExprKind::Function(_) | ExprKind::HostFunction);
                (self.expr(expr), is_macro.then(|| format!("macro {}", short(name))))
            }
            Callee::Method(expr, _) | Callee::Value(expr) => (self.expr(expr), None),
        };
        let mut brought = self.args(&call.args);
        if let Some(step) = step {
            brought.values_mut().for_each(|path| add_step(path, &step));
        }
        join(&mut taint, brought);
        taint
    }

    fn input(&mut self, index: usize, place: Place) -> Taint {
        self.uses.entry(index).or_insert(place);
        Taint::from([(index, Path::new())])
    }

    fn local(&mut self, local: &Local) -> Taint {
        let slot = self.frames.last().and_then(|frame| frame.get(local.slot));
        let attributes = self.attributes.get(&local.slot).filter(|_| self.frames.len() == 1);
        match slot {
            Some(slot) => read(local, slot, attributes, &mut self.left),
            None => self.otherwise(local),
        }
    }

    fn outer(&mut self, local: &Local) -> Taint {
        let slot = self.frames[0].get(local.slot).or(self.ever.get(local.slot).and_then(Option::as_ref));
        match slot {
            Some(slot) => read(local, slot, self.attributes.get(&local.slot), &mut self.left),
            None => self.otherwise(local),
        }
    }

    fn otherwise(&mut self, local: &Local) -> Taint {
        local.otherwise.as_ref().map_or_else(Taint::new, |otherwise| self.expr(otherwise))
    }
}

/// Returns the taint of a name that holds a value.
fn read(local: &Local, slot: &Slot, attributes: Option<&Taint>, left: &mut usize) -> Taint {
    let mut taint = copied(Some(&slot.taint), left);
    join(&mut taint, copied(attributes, left));
    let step = format!("{} {}", slot.binding, short(&local.name));
    taint.values_mut().for_each(|path| add_step(path, &step));
    taint
}

/// Copies a taint, unless the limit on copies has been reached.
fn copied(taint: Option<&Taint>, left: &mut usize) -> Taint {
    let Some(taint) = taint else { return Taint::new() };
    let rest = left.checked_sub(taint.len());
    *left = rest.unwrap_or(0);
    if rest.is_some() { taint.clone() } else { Taint::new() }
}

fn join(taint: &mut Taint, more: Taint) {
    for (input, path) in more {
        if taint.len() >= MAX_TAINT {
            return;
        }
        taint.entry(input).or_insert(path);
    }
}

fn add_step(path: &mut Path, step: &str) {
    if path.len() < MAX_PATH && path.last().is_none_or(|last| last != step) {
        path.push(step.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::super::{CompileOptions, Template};
    use super::*;

    fn flow(source: &str) -> (Vec<String>, Vec<String>) {
        let template = Template::compile(source, CompileOptions::default()).expect("it compiles");
        let Flow { uses, sinks } = analyse(&template.tree);
        let name = |index: usize| template.tree.inputs[index].name.to_string();
        let mut uses: Vec<_> = uses.into_keys().map(name).collect();
        uses.sort();
        let sink = |sink: Sink| std::iter::once(name(sink.input)).chain(sink.path).collect::<Vec<_>>().join(" > ");
        (uses, sinks.into_iter().map(sink).collect())
    }

    #[test]
    fn names_that_a_template_sets_are_its_own() {
        let cases: [(&str, &[&str], &[&str]); 24] = [
            ("{{ a }}", &["a"], &["a"]),
            ("{% set x = a %}{{ x }}", &["a"], &["a > set x"]),
            ("{{ x }}{% set x = 1 %}", &["x"], &["x"]),
            ("{% if a %}{% set x = 1 %}{% endif %}{{ x }}", &["a"], &[]),
            ("{% if a %}{% set x = 1 %}{% else %}{{ x }}{% endif %}", &["a", "x"], &["x"]),
            ("{% for m in items %}{{ m }}{{ loop.index }}{% endfor %}", &["items"], &["items > for m"]),
            ("{% for m in items %}{% endfor %}{{ m }}", &["items", "m"], &["m"]),
            ("{% for k, v in o|items %}{{ v }}{% endfor %}", &["o"], &["o > for v"]),
            ("{% for i in xs %}{{ y }}{% set y = i %}{% endfor %}", &["xs", "y"], &["y"]),
            ("{% with x = a %}{{ x }}{% endwith %}{{ x }}", &["a", "x"], &["a > with x", "x"]),
            ("{% set ns = namespace() %}{% set ns.v = a %}{{ ns.v }}", &["a"], &["a > set ns"]),
            (
                "{% set n = namespace(v='') %}{% for m in xs %}{{ n.v }}{% set n.v = m %}{% endfor %}",
                &["xs"],
                &["xs > for m > set n"],
            ),
            ("{% macro f(x) %}[{{ x }}]{% endmacro %}{{ f(a) }}", &["a"], &["a > macro f"]),
            ("{% macro f() %}{{ a }}{% endmacro %}{{ f() }}", &["a"], &["a > macro f"]),
            ("{% macro f() %}{{ a }}{% endmacro %}", &["a"], &[]),
            ("{% macro f() %}{{ g }}{% endmacro %}{% set g = a %}{{ f() }}", &["a"], &["a > set g > macro f"]),
            ("{% macro f() %}{{ caller() }}{% endmacro %}{% call f() %}{{ a }}{% endcall %}", &["a"], &["a > macro f"]),
            ("{% macro f(x, y=x) %}{% macro g() %}{{ x }}{% endmacro %}{{ g() }}{% endmacro %}{{ f(1) }}", &[], &[]),
            ("{% set x %}{{ a }}{% endset %}{{ x|upper }}", &["a"], &["a > set x"]),
            ("{% filter replace('X', a) %}aXb{% endfilter %}", &["a"], &["a"]),
            ("{{ 'x' if a else b }}", &["a", "b"], &["b"]),
            ("{% if a == b %}x{% endif %}", &["a", "b"], &[]),
            ("{{ range(3) }}{{ dict(a=b) }}", &["b"], &["b"]),
            ("{% set a, b = c, d %}{{ a }}", &["c", "d"], &["c > set a", "d > set a"]),
        ];
        for (source, uses, sinks) in cases {
            let expected: (Vec<_>, Vec<_>) =
                (uses.iter().map(|s| (*s).to_owned()).collect(), sinks.iter().map(|s| (*s).to_owned()).collect());
            assert_eq!(flow(source), expected, "{source}");
        }
    }
}
