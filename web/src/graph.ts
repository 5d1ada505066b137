// A flow as a picture: laid out by dagre, drawn as SVG. The page brings the graph as JSON, and a table that says the same.
//
//   <figure data-graph='{"nodes": […], "edges": […]}' data-states='{"approve": "running"}'>
//
// The states of an instance change while somebody looks: they are painted anew without laying anything out.
import { Graph, layout } from "@dagrejs/dagre";
import { each } from "./part";

interface GraphNode {
  id: string;
  label: string;
  kind: string;
  marks: string[];
  notes: string[];
  href?: string;
}
interface GraphEdge {
  from: string;
  to: string;
  kind: string;
  label: string;
}
interface Drawing {
  nodes: GraphNode[];
  edges: GraphEdge[];
}
type Point = { x: number; y: number };

const SVG = "http://www.w3.org/2000/svg";
const HEIGHT = 40;
const ICON = 30;
const PADDING = 14;
const WIDEST_LABEL = 220;

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

const ruler = document.createElement("canvas").getContext("2d");
function widthOf(text: string): number {
  if (!ruler) return text.length * 8;
  ruler.font = "500 14px system-ui, sans-serif";
  return ruler.measureText(text).width;
}

function shortened(text: string): string {
  let short = text;
  while (short.length > 4 && widthOf(short) > WIDEST_LABEL) short = short.slice(0, -2);
  return short === text ? text : `${short.trimEnd()}…`;
}

function isEnd(node: GraphNode): boolean {
  return node.kind === "start" || node.kind === "final";
}

function sizeOf(node: GraphNode): { width: number; height: number } {
  if (isEnd(node)) return { width: Math.max(60, widthOf(node.label) + 2 * PADDING), height: 30 };
  return { width: widthOf(shortened(node.label)) + ICON + 2 * PADDING, height: HEIGHT };
}

/** Rounded where it turns, so that the eye can follow it. */
function path(points: Point[]): string {
  const [first, ...rest] = points;
  if (!first) return "";
  const parts = [`M${first.x},${first.y}`];
  rest.forEach((point, index) => {
    const next = rest[index + 1];
    if (next) parts.push(`Q${point.x},${point.y} ${(point.x + next.x) / 2},${(point.y + next.y) / 2}`);
    else parts.push(`L${point.x},${point.y}`);
  });
  return parts.join(" ");
}

function drawNode(node: GraphNode, at: Point): SVGElement {
  const { width, height } = sizeOf(node);
  const group = element("a", {
    class: `node kind-${node.kind}${node.marks.map((mark) => ` is-${mark}`).join("")}`,
    transform: `translate(${at.x - width / 2},${at.y - height / 2})`,
    "data-node": node.id,
    "aria-label": [node.label, ...node.notes].join(". "),
    href: node.href ?? `#task-${encodeURIComponent(node.id)}`,
  });
  const box = element("rect", { class: "box", width, height, rx: isEnd(node) ? height / 2 : 8 });
  group.append(box);
  if (!isEnd(node)) group.append(element("use", { href: `#icon-${node.kind}`, x: 10, y: height / 2 - 10, width: 20, height: 20 }));
  const x = isEnd(node) ? width / 2 : ICON + PADDING - 4;
  group.append(element("text", { x, y: height / 2 + 5, ...(isEnd(node) ? { "text-anchor": "middle" } : {}) }, shortened(node.label)));
  if (node.marks.includes("safe-point")) group.append(element("path", { class: "mark", d: `M${width - 12},0v14l-5,-4l-5,4v-14z` }));
  group.append(element("circle", { class: "state", cx: width - 2, cy: 2, r: 6 }));
  return group;
}

function drawEdge(edge: GraphEdge, points: Point[]): SVGElement {
  const group = element("g", { class: `edge kind-${edge.kind}` });
  group.append(element("path", { d: path(points), "marker-end": "url(#arrow)" }));
  const middle = points[Math.floor(points.length / 2)];
  if (edge.label && middle) {
    const label = element("text", { x: middle.x, y: middle.y - 5, "text-anchor": "middle" }, shortened(edge.label));
    group.append(label);
  }
  return group;
}

function laidOut(drawing: Drawing, isNarrow: boolean): Graph {
  const graph = new Graph({ multigraph: true });
  graph.setGraph({ rankdir: isNarrow ? "TB" : "LR", nodesep: 26, ranksep: 54, edgesep: 14, marginx: 12, marginy: 12 });
  for (const node of drawing.nodes) graph.setNode(node.id, { ...sizeOf(node) });
  drawing.edges.forEach((edge, index) => {
    const room = edge.label ? { width: Math.min(widthOf(edge.label), WIDEST_LABEL), height: 16, labelpos: "c" } : {};
    graph.setEdge(edge.from, edge.to, { ...room, weight: edge.kind === "depends" ? 2 : 1 }, String(index));
  });
  layout(graph);
  return graph;
}

function draw(figure: HTMLElement): void {
  const drawing = JSON.parse(figure.dataset["graph"] ?? "{}") as Drawing;
  const graph = laidOut(drawing, figure.clientWidth < 600);
  const { width = 100, height = 100 } = graph.graph() as { width?: number; height?: number };
  const svg = element("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "group", "aria-label": figure.dataset["label"] ?? "" });
  svg.append(element("defs", {}, element("marker", { id: "arrow", viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 7, markerHeight: 7, orient: "auto" }, element("path", { d: "M0,0L8,4L0,8z" }))));
  drawing.edges.forEach((edge, index) => {
    const { points } = graph.edge({ v: edge.from, w: edge.to, name: String(index) }) as { points: Point[] };
    svg.append(drawEdge(edge, points));
  });
  for (const node of drawing.nodes) svg.append(drawNode(node, graph.node(node.id) as unknown as Point));
  const canvas = figure.querySelector(".canvas") ?? figure;
  canvas.replaceChildren(svg);
  figure.dataset["drawn"] = figure.dataset["graph"] ?? "";
  paint(figure);
  explain(figure, drawing);
}

/** Each task in the colour of its state. */
function paint(figure: HTMLElement): void {
  const states = JSON.parse(figure.dataset["states"] ?? "{}") as Record<string, string>;
  for (const node of figure.querySelectorAll<SVGElement>("[data-node]")) {
    const state = states[node.dataset["node"] ?? ""];
    if (state) node.dataset["state"] = state;
    else delete node.dataset["state"];
  }
}

/** What stands behind a task is shown while the pointer or the focus is on it, until Escape. */
function explain(figure: HTMLElement, drawing: Drawing): void {
  const card = figure.querySelector<HTMLElement>(".card");
  if (!card) return;
  const byId = new Map(drawing.nodes.map((node) => [node.id, node]));
  const show = (event: Event): void => {
    const target = (event.target as Element).closest<SVGElement>("[data-node]");
    const node = byId.get(target?.dataset["node"] ?? "");
    if (!target || !node) return;
    const title = document.createElement("strong");
    title.textContent = node.label;
    card.replaceChildren(title, ...node.notes.map(line));
    card.hidden = false;
    const here = target.getBoundingClientRect();
    const around = figure.getBoundingClientRect();
    const room = Math.max(8, Math.min(here.left - around.left, around.width - card.offsetWidth - 8));
    card.style.left = `${room}px`;
    card.style.top = `${here.bottom - around.top + 8}px`;
  };
  const hide = (): void => {
    card.hidden = true;
  };
  const canvas = figure.querySelector(".canvas");
  for (const type of ["pointerover", "focusin"]) canvas?.addEventListener(type, show);
  for (const type of ["pointerleave", "focusout"]) canvas?.addEventListener(type, hide);
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") hide();
  });
}

function line(text: string): HTMLElement {
  const made = document.createElement("p");
  made.textContent = text;
  return made;
}

function zoom(figure: HTMLElement, factor: number): void {
  const svg = figure.querySelector("svg");
  if (!svg) return;
  const natural = svg.viewBox.baseVal;
  const now = factor ? Math.min(3, Math.max(0.2, (svg.clientWidth / natural.width) * factor)) : Math.min(1, (figure.clientWidth - 24) / natural.width);
  svg.setAttribute("width", String(natural.width * now));
  svg.setAttribute("height", String(natural.height * now));
}

each<HTMLElement>("[data-graph]", (figure) => {
  const began = performance.now();
  draw(figure);
  figure.dataset["took"] = String(Math.round(performance.now() - began));
  figure.addEventListener("click", (event) => {
    const button = (event.target as Element).closest<HTMLElement>("[data-zoom]");
    if (button) zoom(figure, Number(button.dataset["zoom"]));
  });
  new MutationObserver(() => {
    if (figure.dataset["drawn"] === figure.dataset["graph"]) paint(figure);
    else draw(figure);
  }).observe(figure, { attributes: true, attributeFilter: ["data-states", "data-graph"] });
});
