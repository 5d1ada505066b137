// Reading parts of pages again, by htmx; idiomorph puts in what differs, so that focus, scrolling and typed text stay.
import htmx from "htmx.org";
import { Idiomorph } from "idiomorph";

// A form that somebody is filling in stays theirs; `data-stay` stays even when the page has it no more.
const KEPT = "[data-keep], [data-stay], dialog[open]";
const STAYS = "[data-stay], dialog[open]";

const isLike = (node: Node, selector: string): boolean => node instanceof Element && node.matches(selector);

htmx.config.includeIndicatorStyles = false;
htmx.config.allowEval = false;
htmx.config.historyCacheSize = 0; // what others may read here later must not stay in the browser
htmx.config.ignoreTitle = true; // parts of other pages are read into this one
htmx.config.scrollBehavior = "auto";

htmx.defineExtension("morph", {
  isInlineSwap: (style: string) => style === "morph",
  handleSwap: (style: string, target: Node, fragment: Node) => {
    if (style !== "morph") return false;
    const content = fragment instanceof DocumentFragment ? fragment.firstElementChild : fragment;
    if (!(content instanceof Element) || !(target instanceof Element)) return false;
    const focused = document.activeElement;
    const morphed = Idiomorph.morph(target, content.outerHTML, {
      morphStyle: "outerHTML",
      // What is being typed stays; of a button, the words are all there is.
      ignoreActiveValue: focused !== null && isLike(focused, "input, select, textarea"),
      callbacks: {
        beforeNodeMorphed: (before: Node) => !isLike(before, KEPT),
        beforeNodeRemoved: (before: Node) => !isLike(before, STAYS),
        // What somebody has unfolded stays so.
        beforeAttributeUpdated: (name: string, element: Element) => !(name === "open" && isLike(element, "details")),
      },
    });
    // A row that is moved loses the focus.
    if (focused instanceof HTMLElement && focused.isConnected && focused !== document.activeElement) focused.focus({ preventScroll: true });
    return morphed;
  },
} as Parameters<typeof htmx.defineExtension>[1]);

// Who was signed out meanwhile is asked to sign in, and comes back here.
document.addEventListener("htmx:beforeOnLoad", (event) => {
  const { xhr } = (event as CustomEvent<{ xhr: XMLHttpRequest }>).detail;
  if (xhr.status === 401) location.reload();
});
