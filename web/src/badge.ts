// The counts in the navigation are read by themselves, so that no page waits for them.
import { each } from "./part";

// Nobody is hinted at what goes wrong with instances that are not theirs.
const EVERY = 30_000;

each<HTMLElement>("[data-badges]", (place) => {
  const read = async (): Promise<void> => {
    const response = await fetch("/badges");
    if (!response.ok || response.redirected) return; // signed out meanwhile
    const counts = (await response.json()) as Record<string, number>;
    for (const badge of place.querySelectorAll<HTMLElement>("[data-badge]")) {
      const count = counts[badge.dataset["badge"] ?? ""] ?? 0;
      badge.textContent = count ? (count > 999 ? "999+" : String(count)) : "";
      badge.hidden = !count;
    }
  };
  for (const what of ["worklist", "messages", "page", "often"]) document.body.addEventListener(`reread-${what}`, () => void read());
  window.setInterval(() => document.hidden || void read(), EVERY);
  void read();
});
