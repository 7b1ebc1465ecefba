// What the page fetches. Addresses are relative, so that Airflow may live below any prefix.

export class Refused extends Error {}

async function get(path, headers = {}) {
  const response = await fetch(path, {
    headers: { Accept: "application/json", ...headers }, credentials: "same-origin", cache: "no-store",
  });
  if (response.status === 401 || response.status === 403) throw new Refused(String(response.status));
  return response;
}

let tag = null;

/** The published status: {changed, body, ageSeconds}; `body` is null while nothing has changed. */
export async function fetchStatus() {
  const response = await get("api/status", tag ? { "If-None-Match": tag } : {});
  const header = (name) => {
    const text = response.headers.get(name);
    return text ? Number(text) : null;
  };
  const clocks = { ageSeconds: header("Elastic-Age"), serverNow: header("Elastic-Now") };
  if (response.status === 304) return { body: null, ...clocks };
  if (!response.ok) throw new Error(`the api-server answered ${response.status}`);
  const body = await response.json();
  tag = response.headers.get("ETag");
  return { body, ...clocks };
}

export async function fetchDecisions(limit = 200) {
  const response = await get(`api/decisions?limit=${limit}`);
  if (!response.ok) throw new Error(`the api-server answered ${response.status}`);
  return (await response.json()).decisions;
}

export async function fetchExplanation(subject) {
  const response = await get(`api/explain?subject=${encodeURIComponent(subject)}`);
  if (!response.ok && response.status !== 404) throw new Error(`the api-server answered ${response.status}`);
  return response.json();
}
