import { each } from "./part";

// Language and theme: kept in cookies, so that the page comes as it should be, and nothing flashes.
each<HTMLSelectElement>("select[data-cookie]", (select) => {
  select.addEventListener("change", () => {
    document.cookie = `${select.dataset["cookie"]}=${select.value}; path=/; max-age=31536000; samesite=lax`;
    location.reload();
  });
});

// A menu closes when something in it is chosen, when somebody clicks elsewhere, and by Escape.
each<HTMLElement>("[data-menu]", (menu) => {
  document.addEventListener("click", (event) => {
    if (menu instanceof HTMLDetailsElement && menu.open && !menu.contains(event.target as Node)) menu.open = false;
  });
  menu.addEventListener("click", (event) => {
    const isChosen = (event.target as Element).closest("[data-opens], [data-api]");
    if (isChosen && menu instanceof HTMLDetailsElement) menu.open = false;
  });
  menu.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && menu instanceof HTMLDetailsElement) {
      menu.open = false;
      menu.querySelector("summary")?.focus();
    }
  });
});
