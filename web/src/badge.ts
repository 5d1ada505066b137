// The counts in the navigation are read by themselves, so that no page waits for them.
import { each } from "./part";

// Nobody is hinted at what goes wrong with instances that are not theirs.
const EVERY = 30_000;
const GATHERED_FOR = 300; // milliseconds: a new page, the first hint of its stream and what follows an act are one reading

each<HTMLElement>("[data-badges]", (place) => {
  let timer: number | undefined;
  const read = async (): Promise<void> => {
    timer = undefined;
    const response = await fetch("/badges");
    if (!response.ok || response.redirected) return; // signed out meanwhile
    const counts = (await response.json()) as Record<string, number>;
    for (const badge of place.querySelectorAll<HTMLElement>("[data-badge]")) {
      const count = counts[badge.dataset["badge"] ?? ""] ?? 0;
      badge.textContent = count ? (count > 999 ? "999+" : String(count)) : "";
      badge.hidden = !count;
    }
  };
  const soon = (): void => void (timer ??= window.setTimeout(() => void read(), GATHERED_FOR));
  for (const what of ["worklist", "messages", "page", "often"]) document.body.addEventListener(`reread-${what}`, soon);
  window.setInterval(() => document.hidden || soon(), EVERY);
  soon();
});
