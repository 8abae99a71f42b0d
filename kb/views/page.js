const reveal = () => {
  const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (target && target.tagName === "DETAILS") { target.open = true; target.scrollIntoView(); }
};
addEventListener("hashchange", reveal);
reveal();
const filter = document.getElementById("filter");
if (filter) filter.addEventListener("input", () => {
  const words = filter.value.toLowerCase();
  let shown = 0;
  for (const row of document.querySelectorAll(".units tbody tr")) {
    row.hidden = !row.textContent.toLowerCase().includes(words);
    shown += !row.hidden;
  }
  document.getElementById("shown").textContent = words && `${shown} shown`;
});
