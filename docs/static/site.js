// The theme leaves its two side columns without names.
const names = { ".sidebar-drawer": "All pages", ".toc-drawer": "This page" };
for (const [part, name] of Object.entries(names)) document.querySelector(part)?.setAttribute("aria-label", name);

// The keyboard reaches each part that scrolls sideways at the present width.
const parts = document.querySelectorAll("pre, .table-wrapper, .sig");
const reach = () => parts.forEach((part) => {
  if (part.scrollWidth > part.clientWidth) part.tabIndex = 0;
  else part.removeAttribute("tabindex");
});
reach();
addEventListener("load", reach);
addEventListener("resize", reach);
