// Runs before the page is drawn, so that a chosen theme does not flash.
try {
  const theme = JSON.parse(localStorage.getItem("theme") ?? "null");
  if (theme === "light" || theme === "dark") document.documentElement.dataset.theme = theme;
} catch { /* the system's theme does */ }
