// The first steps: what somebody has tried is ticked. It is a matter of this browser, so nobody else keeps it.
import { each } from "./part";

const PLACE = `first-${document.body.dataset["person"] ?? ""}`;

function done(): Set<string> {
  return new Set((localStorage.getItem(PLACE) ?? "").split(" ").filter(Boolean));
}

function note(thing: string): void {
  localStorage.setItem(PLACE, [...done().add(thing)].join(" "));
}

const ASKED: Array<[RegExp, string]> = [
  [/^POST \/api\/items\/\d+\/finish$/, "item"],
  [/^POST \/api\/(flows|pdl|instances)$/, "flow"],
];
document.addEventListener("api:done", (event) => {
  const asked = (event.target as HTMLElement).dataset["api"] ?? "";
  for (const [pattern, thing] of ASKED) if (pattern.test(asked)) note(thing);
});
if (/^\/instances\/\d+/.test(location.pathname)) note("instance");

each<HTMLElement>("[data-thing]", (thing) => {
  if (!done().has(thing.dataset["thing"] ?? "")) return;
  thing.classList.add("is-done");
  for (const tick of thing.querySelectorAll<HTMLElement>("[data-tick]")) tick.hidden = false;
});

// Whether the first steps are shown: the server must know, or they would flash.
each<HTMLElement>("[data-first]", (button) => {
  button.addEventListener("click", () => {
    document.cookie = `mutirao_first=${button.dataset["first"]}; path=/; max-age=31536000; samesite=lax`;
    location.reload();
  });
});
