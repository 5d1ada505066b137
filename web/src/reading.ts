// Reading parts of pages again, by htmx; idiomorph puts in what differs, so that focus, scrolling and typed text stay.
import htmx from "htmx.org";
import { Idiomorph } from "idiomorph";

const KEPT = "[data-keep]";

htmx.config.includeIndicatorStyles = false;
htmx.config.allowEval = false;
htmx.config.historyCacheSize = 0; // what others may read here later must not stay in the browser
htmx.config.scrollBehavior = "auto";

htmx.defineExtension("morph", {
  isInlineSwap: (style: string) => style === "morph",
  handleSwap: (style: string, target: Node, fragment: Node) => {
    if (style !== "morph") return false;
    const content = fragment instanceof DocumentFragment ? fragment.firstElementChild : fragment;
    if (!(content instanceof Element) || !(target instanceof Element)) return false;
    return Idiomorph.morph(target, content.outerHTML, {
      morphStyle: "outerHTML",
      ignoreActiveValue: true,
      callbacks: {
        // A form that somebody is filling in stays theirs.
        beforeNodeMorphed: (before: Node) => !(before instanceof Element && before.matches(KEPT)),
        beforeNodeRemoved: (before: Node) => !(before instanceof HTMLDialogElement && before.open),
      },
    });
  },
} as Parameters<typeof htmx.defineExtension>[1]);

// Who was signed out meanwhile is asked to sign in, and comes back here.
document.addEventListener("htmx:beforeOnLoad", (event) => {
  const { xhr } = (event as CustomEvent<{ xhr: XMLHttpRequest }>).detail;
  if (xhr.status === 401) location.reload();
});
