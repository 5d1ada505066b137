// Where everything in the picture of a flow stands: dagre decides.
//
// It lays out a long edge by a point in each layer that it passes. In a flow of hundreds of tasks those points are thousands,
// and take seconds. So there is a budget of them: the longest edges are left to themselves, and drawn behind everything else.
// And of many tasks the layers are found by the quicker way, which is hardly worse.
import { Graph, layout } from "@dagrejs/dagre";

export interface GraphNode {
  id: string;
  label: string;
  kind: string;
  marks: string[];
  notes: string[];
  href: string;
}
export interface GraphEdge {
  from: string;
  to: string;
  kind: string;
  label: string;
}
export type Point = { x: number; y: number };
/** What is written somewhere, the room that it takes, and the middle of that. */
export type Place = Point & { text: string; width: number; height: number };
export interface Layout {
  width: number;
  height: number;
  nodes: Map<string, Place>;
  edges: Array<{ points: Point[]; label?: Place }>;
}

const HEIGHT = 40;
const PADDING = 14;
const LONGEST_TEXT = 30;
const POINTS = 600;
const MANY = 60;
const NARROW = 400;
export const ICON = 30;

const ruler = document.createElement("canvas").getContext("2d");
const widths = new Map<string, number>();

function widthOf(text: string, font: string): number {
  const known = widths.get(font + text);
  if (known !== undefined) return known;
  if (ruler && ruler.font !== font) ruler.font = font;
  const width = ruler ? ruler.measureText(text).width : text.length * 8;
  widths.set(font + text, width);
  return width;
}

function shortened(text: string): string {
  return text.length > LONGEST_TEXT ? `${text.slice(0, LONGEST_TEXT - 1).trimEnd()}…` : text;
}

export function isEnd(node: GraphNode): boolean {
  return node.kind === "start" || node.kind === "final";
}

function sizeOf(node: GraphNode): Omit<Place, keyof Point> {
  const text = shortened(node.label);
  const width = widthOf(text, "500 14px system-ui, sans-serif");
  if (isEnd(node)) return { text, width: Math.max(60, width + 2 * PADDING), height: 30 };
  const flag = node.marks.includes("safe-point") ? 10 : 0;
  return { text, width: width + ICON + 2 * PADDING + flag, height: HEIGHT };
}

/** In which layer each node stands at the earliest; an edge that leads back counts for nothing. */
function layers(nodes: GraphNode[], edges: GraphEdge[]): Map<string, number> {
  const before = new Map<string, string[]>(nodes.map((node) => [node.id, []]));
  for (const edge of edges) before.get(edge.to)?.push(edge.from);
  const found = new Map<string, number>();
  const asked = new Set<string>();
  const layerOf = (id: string): number => {
    const known = found.get(id);
    if (known !== undefined) return known;
    if (asked.has(id)) return -1;
    asked.add(id);
    const layer = 1 + Math.max(-1, ...(before.get(id) ?? []).map(layerOf));
    found.set(id, layer);
    return layer;
  };
  for (const node of nodes) layerOf(node.id);
  return found;
}

/** The edges that dagre lays out: all where there are few, else the short ones. */
function withinBudget(nodes: GraphNode[], edges: GraphEdge[]): Set<GraphEdge> {
  const layer = layers(nodes, edges);
  const spans = edges.map((edge) => ({ edge, span: Math.abs((layer.get(edge.to) ?? 0) - (layer.get(edge.from) ?? 0)) }));
  spans.sort((one, other) => one.span - other.span);
  let left = POINTS;
  return new Set(spans.filter(({ span }) => span <= 1 || (left -= 2 * span - 1) > 0).map(({ edge }) => edge));
}

/** Downwards where it is narrow; else to the right, or whichever way it can be seen better: of a few tasks both are tried. */
export function laidOut(nodes: GraphNode[], edges: GraphEdge[], room: { width: number; height: number }): Layout {
  if (room.width < NARROW) return laidOutTo("TB", nodes, edges);
  const right = laidOutTo("LR", nodes, edges);
  if (nodes.length > MANY) return right;
  const down = laidOutTo("TB", nodes, edges);
  const scale = ({ width, height }: Layout): number => Math.min(1, room.width / width, room.height / height);
  return scale(down) > scale(right) ? down : right;
}

function laidOutTo(rankdir: "LR" | "TB", nodes: GraphNode[], edges: GraphEdge[]): Layout {
  const graph = new Graph({ multigraph: true });
  const gaps = { nodesep: 22, ranksep: 46, edgesep: 12, marginx: 12, marginy: 12 };
  graph.setGraph({ ...gaps, rankdir, ranker: nodes.length > MANY ? "tight-tree" : "network-simplex" });
  for (const node of nodes) graph.setNode(node.id, sizeOf(node));
  const inside = withinBudget(nodes, edges);
  edges.forEach((edge, index) => {
    if (!inside.has(edge)) return;
    const text = shortened(edge.label);
    const room = text ? { text, width: widthOf(text, "12px system-ui, sans-serif"), height: 16, labelpos: "c" } : {};
    graph.setEdge(edge.from, edge.to, { ...room, weight: edge.kind === "depends" ? 2 : 1 }, String(index));
  });
  layout(graph);
  const { width = 100, height = 100 } = graph.graph() as { width?: number; height?: number };
  const placed = new Map(nodes.map((node) => [node.id, graph.node(node.id) as unknown as Place]));
  const drawn = edges.map((edge, index) => {
    if (!inside.has(edge)) return { points: straight(placed.get(edge.from), placed.get(edge.to), rankdir) };
    const laid = graph.edge({ v: edge.from, w: edge.to, name: String(index) }) as unknown as Place & { points: Point[] };
    return { points: laid.points, ...(laid.text ? { label: laid } : {}) };
  });
  return { width, height, nodes: placed, edges: drawn };
}

function straight(from: Place | undefined, to: Place | undefined, rankdir: string): Point[] {
  if (!from || !to) return [];
  if (rankdir === "TB") return [{ x: from.x, y: from.y + from.height / 2 }, { x: to.x, y: to.y - to.height / 2 }];
  return [{ x: from.x + from.width / 2, y: from.y }, { x: to.x - to.width / 2, y: to.y }];
}
