// Times, durations and amounts as people read them. Times are Unix seconds everywhere.

/** Airflow's own time zone choice, where it can be read; otherwise the browser's. */
function zone() {
  try {
    const chosen = JSON.parse(localStorage.getItem("timezone") ?? "null");
    if (typeof chosen !== "string" || chosen === "") return undefined;
    new Intl.DateTimeFormat("en", { timeZone: chosen });
    return chosen;
  } catch {
    return undefined;
  }
}

const options = { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23", timeZone: zone() };
const clockFormat = new Intl.DateTimeFormat("en-GB", options);
const shortFormat = new Intl.DateTimeFormat("en-GB", { ...options, second: undefined });
const dayFormat = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", timeZone: options.timeZone });
const fullFormat = new Intl.DateTimeFormat("en-GB", {
  ...options, year: "numeric", month: "short", day: "numeric", timeZoneName: "short",
});

const date = (seconds) => new Date(seconds * 1000);
const good = (seconds) => Number.isFinite(seconds) && Math.abs(seconds) < 8e12;

export const clock = (seconds) => (good(seconds) ? clockFormat.format(date(seconds)) : "–");
export const full = (seconds) => (good(seconds) ? fullFormat.format(date(seconds)) : "–");

/** A label of the time axis: the day where a day begins, otherwise hours and minutes (and seconds on short ranges). */
export function tick(seconds, stepSeconds) {
  const text = stepSeconds < 60 ? clock(seconds) : shortFormat.format(date(seconds));
  return text === "00:00" ? dayFormat.format(date(seconds)) : text;
}

/** 95 → "1 min 35 s"; two units at most. */
export function duration(seconds) {
  if (!Number.isFinite(seconds)) return "–";
  const total = Math.max(0, Math.round(seconds));
  if (total < 60) return `${total} s`;
  if (total < 600) return total % 60 ? `${Math.floor(total / 60)} min ${total % 60} s` : `${total / 60} min`;
  if (total < 3600) return `${Math.round(total / 60)} min`;
  if (total < 86400) {
    const minutes = Math.round((total % 3600) / 60);
    const hours = Math.floor(total / 3600) + (minutes === 60 ? 1 : 0);
    return minutes % 60 ? `${hours} h ${minutes} min` : `${hours} h`;
  }
  return `${Math.round(total / 8640) / 10} days`;
}

/** "in 4 min 10 s", "now", "12 s ago". */
export function relative(seconds, now) {
  if (!good(seconds)) return "–";
  const ahead = seconds - now;
  if (Math.abs(ahead) < 1.5) return "now";
  return ahead > 0 ? `in ${duration(ahead)}` : `${duration(-ahead)} ago`;
}

export const plural = (count, one, many = `${one}s`) => `${count} ${count === 1 ? one : many}`;

export function money(amount) {
  return amount >= 100 ? amount.toFixed(0) : amount.toFixed(2);
}
