// Pages are read again in parts: what a feature does to the elements of a page it does to those that come later.
type Setup<E extends Element> = (element: E) => void;

const setups: Array<(root: ParentNode) => void> = [];

/** Calls `setup` once for every element that fits, now and whenever a part of the page is read again. */
export function each<E extends HTMLElement>(selector: string, setup: Setup<E>): void {
  const known = new WeakSet<Element>();
  const apply = (root: ParentNode): void => {
    for (const element of root.querySelectorAll<E>(selector)) {
      if (!known.has(element)) {
        known.add(element);
        setup(element);
      }
    }
  };
  setups.push(apply);
  apply(document);
}

document.addEventListener("htmx:load", () => {
  for (const apply of setups) apply(document);
});

/** A text of the page's language: all of them stand in the page, as `data-say-…` of its body. */
export function say(name: string, values: Record<string, string> = {}): string {
  const text = document.body.getAttribute(`data-say-${name}`) ?? name;
  return text.replace(/\{(\w+)\}/g, (whole, key: string) => values[key] ?? whole);
}

/** Tells whoever looks, and whoever listens, in the one place for it. */
export function tell(text: string): void {
  const place = document.getElementById("told");
  if (!place) return;
  place.textContent = text;
  place.classList.add("is-shown");
  window.setTimeout(() => place.classList.remove("is-shown"), 4000);
}

export function cookie(name: string): string | undefined {
  const found = document.cookie.split("; ").find((each) => each.startsWith(`${name}=`));
  return found?.slice(name.length + 1);
}
