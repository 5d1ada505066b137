// A flow as a picture: laid out by dagre, drawn as SVG. The page brings the graph as JSON, and says the same in words.
//
//   <figure data-graph='{"nodes": […], "edges": […]}' data-states='{"approve": "running"}'>
//
// The states of an instance change while somebody looks: they are painted anew without laying anything out.
import { each } from "./part";
import { ICON, isEnd, laidOut, type GraphEdge, type GraphNode, type Place, type Point } from "./layout";

interface Drawing {
  nodes: GraphNode[];
  edges: GraphEdge[];
  words: Record<string, string>;
}

const SVG = "http://www.w3.org/2000/svg";
/** Names are then of 12.6 pixels: what has no room at that is scrolled to. */
const READABLE = 0.9;
const UNDER_WAY = ["failed", "blocked", "running", "ready", "synchronizing"];
const SIGNS: Record<string, string> = { succeeded: "✓", failed: "!", aborted: "!", blocked: "!", running: "▸", compensated: "↶" };

function element<K extends keyof SVGElementTagNameMap>(
  name: K,
  attributes: Record<string, string | number>,
  ...children: Array<SVGElement | string>
): SVGElementTagNameMap[K] {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, String(value));
  made.append(...children);
  return made;
}

/** Rounded where it turns, so that the eye can follow it. */
function path(points: Point[]): string {
  const [first, ...rest] = points;
  if (!first) return "";
  const parts = [`M${first.x.toFixed(1)},${first.y.toFixed(1)}`];
  rest.forEach((point, index) => {
    const next = rest[index + 1];
    const at = `${point.x.toFixed(1)},${point.y.toFixed(1)}`;
    if (next) parts.push(`Q${at} ${((point.x + next.x) / 2).toFixed(1)},${((point.y + next.y) / 2).toFixed(1)}`);
    else parts.push(`L${at}`);
  });
  return parts.join(" ");
}

function drawNode(node: GraphNode, { text, width, height, x: middle, y: centre }: Place): SVGElement {
  const group = element(node.href ? "a" : "g", {
    class: ["node", `kind-${node.kind}`, ...node.marks.map((mark) => `is-${mark}`)].join(" "),
    transform: `translate(${middle - width / 2},${centre - height / 2})`,
    "data-node": node.id,
    ...(node.href ? { href: node.href, "aria-label": [node.label, ...node.notes].join(". ") } : {}),
  });
  group.append(element("rect", { class: "box", width, height, rx: isEnd(node) ? height / 2 : 8 }));
  if (isEnd(node)) {
    group.append(element("text", { x: width / 2, y: height / 2 + 5, "text-anchor": "middle" }, text));
    return group;
  }
  if (node.kind === "child") group.append(element("rect", { class: "inner", x: 4, y: 4, width: width - 8, height: height - 8, rx: 5 }));
  group.append(element("use", { href: `#icon-${node.kind}`, x: 10, y: height / 2 - 10, width: 20, height: 20 }));
  group.append(element("text", { x: ICON + 10, y: height / 2 + 5 }, text));
  if (node.marks.includes("safe-point")) group.append(element("path", { class: "mark", d: `M${width - 12},0v14l-5,-4l-5,4v-14z` }));
  if (node.marks.includes("critical")) group.append(element("path", { class: "lock", d: `M${width - 22},${height}v-4h12v4z` }));
  return group;
}

function drawEdge(edge: GraphEdge, points: Point[], label?: Place): SVGElement {
  const group = element("g", { class: `edge kind-${edge.kind}` });
  group.append(element("path", { d: path(points), "marker-end": "url(#arrow)" }));
  if (label) group.append(element("text", { x: label.x, y: label.y + 4, "text-anchor": "middle" }, label.text));
  return group;
}

function draw(figure: HTMLElement, canvas: HTMLElement): Drawing {
  const drawing = JSON.parse(figure.dataset["graph"] ?? "{}") as Drawing;
  const began = performance.now();
  const { width, height, nodes, edges } = laidOut(drawing.nodes, drawing.edges, { width: canvas.clientWidth, height: canvas.clientHeight });
  const svg = element("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": figure.dataset["label"] ?? "" });
  const head = element("path", { d: "M0,0L8,4L0,8z" });
  const arrow = { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" };
  svg.append(element("defs", {}, element("marker", arrow, head)));
  drawing.edges.forEach((edge, index) => {
    const laid = edges[index];
    if (laid) svg.append(drawEdge(edge, laid.points, laid.label));
  });
  for (const node of drawing.nodes) {
    const place = nodes.get(node.id);
    if (place) svg.append(drawNode(node, place));
  }
  canvas.replaceChildren(svg);
  canvas.dataset["took"] = String(Math.round(performance.now() - began));
  zoom(canvas, 0, READABLE);
  return drawing;
}

/** Each task in the colour of its state, with a sign and a word for it. */
function paint(figure: HTMLElement, canvas: HTMLElement, drawing: Drawing): void {
  const states = JSON.parse(figure.dataset["states"] ?? "{}") as Record<string, string>;
  const byId = new Map(drawing.nodes.map((node) => [node.id, node]));
  for (const group of canvas.querySelectorAll<SVGElement>("a[data-node]")) {
    const node = byId.get(group.dataset["node"] ?? "");
    const state = states[node?.id ?? ""];
    if (!node || group.dataset["state"] === state) continue;
    group.querySelector(".state")?.remove();
    delete group.dataset["state"];
    const said = state ? [drawing.words[state] ?? state] : [];
    group.setAttribute("aria-label", [node.label, ...said, ...node.notes].join(". "));
    if (!state) continue;
    group.dataset["state"] = state;
    if (SIGNS[state]) group.append(badge(group, SIGNS[state]));
  }
}

function badge(group: SVGElement, sign: string): SVGElement {
  const width = Number(group.querySelector(".box")?.getAttribute("width"));
  const circle = element("circle", { cx: width - 2, cy: 2, r: 9 });
  return element("g", { class: "state" }, circle, element("text", { x: width - 2, y: 6, "text-anchor": "middle" }, sign));
}

/** Of a picture that is larger than its frame, what is under way is seen first, or else its beginning. */
function reveal(canvas: HTMLElement): void {
  const wanted = [...UNDER_WAY.map((state) => `[data-state="${state}"]`), ".kind-start"];
  const found = wanted.map((each) => canvas.querySelector(each)).find((each) => each !== null);
  if (!found) return;
  const here = found.getBoundingClientRect();
  const frame = canvas.getBoundingClientRect();
  canvas.scrollBy(here.left + here.width / 2 - frame.left - frame.width / 2, here.top + here.height / 2 - frame.top - frame.height / 2);
}

/** What stands behind a task is shown while the pointer or the focus is on it, until Escape. */
function explain(figure: HTMLElement, canvas: HTMLElement, known: () => Drawing): void {
  const card = figure.querySelector<HTMLElement>(".card");
  if (!card) return;
  const hide = (): void => {
    card.hidden = true;
  };
  const show = (target: SVGElement | null): void => {
    const node = known().nodes.find((one) => one.id === target?.dataset["node"]);
    if (!target || !node?.notes.length) return hide();
    const title = document.createElement("strong");
    title.textContent = node.label;
    const state = known().words[target.dataset["state"] ?? ""];
    card.replaceChildren(title, ...[...(state ? [state] : []), ...node.notes].map(line));
    card.hidden = false;
    beside(card, target.getBoundingClientRect(), figure.getBoundingClientRect());
  };
  for (const type of ["pointerover", "focusin"]) canvas.addEventListener(type, (event) => show((event.target as Element).closest<SVGElement>("[data-node]")));
  for (const type of ["pointerleave", "focusout"]) canvas.addEventListener(type, hide);
  // The frame scrolls to what gets the focus.
  canvas.addEventListener("scroll", () => {
    if (!card.hidden) show(canvas.querySelector<SVGElement>("[data-node]:focus"));
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") hide();
  });
}

function beside(card: HTMLElement, here: DOMRect, around: DOMRect): void {
  card.style.left = `${Math.max(8, Math.min(here.left - around.left, around.width - card.offsetWidth - 8))}px`;
  card.style.top = `${here.bottom - around.top + 8}px`;
}

function line(text: string): HTMLElement {
  const made = document.createElement("p");
  made.textContent = text;
  return made;
}

/** By a factor; by 0 to what there is room for, but not below `least`. */
function zoom(canvas: HTMLElement, factor: number, least = 0.05): void {
  const svg = canvas.querySelector("svg");
  if (!svg) return;
  const natural = svg.viewBox.baseVal;
  const now = factor ? (svg.width.baseVal.value / natural.width) * factor : Math.min(1, (canvas.clientWidth - 4) / natural.width, (canvas.clientHeight - 4) / natural.height);
  const scale = Math.min(3, Math.max(least, now));
  svg.setAttribute("width", String(natural.width * scale));
  svg.setAttribute("height", String(natural.height * scale));
}

each<HTMLElement>("[data-graph]", (figure) => {
  const canvas = figure.querySelector<HTMLElement>(".canvas");
  if (!canvas) return;
  let drawn = figure.dataset["graph"];
  let drawing = draw(figure, canvas);
  paint(figure, canvas, drawing);
  reveal(canvas);
  explain(figure, canvas, () => drawing);
  figure.addEventListener("click", (event) => {
    const button = (event.target as Element).closest<HTMLElement>("[data-zoom]");
    if (button) zoom(canvas, Number(button.dataset["zoom"]));
  });
  new MutationObserver(() => {
    if (drawn !== figure.dataset["graph"]) {
      drawn = figure.dataset["graph"];
      drawing = draw(figure, canvas);
    }
    paint(figure, canvas, drawing);
  }).observe(figure, { attributes: true, attributeFilter: ["data-states", "data-graph"] });
});
