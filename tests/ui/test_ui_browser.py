"""The page in a real browser, over a made-up installation (`ui_preview.py`)."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

import pytest
import uvicorn
from ui_browser import Browser, browser, find_chromium
from ui_builders import HOSTILE
from ui_preview import PreviewStore, build

pytestmark = pytest.mark.skipif(find_chromium() is None, reason="needs Chromium (Debian: apt-get install chromium)")

READY = "document.querySelector('#node-pools .pool') && document.querySelector('#timeline svg')"


@pytest.fixture(scope="module")
def store() -> PreviewStore:
    return PreviewStore("busy", 4)


@pytest.fixture(scope="module")
def address(store: PreviewStore) -> Iterator[str]:
    server = uvicorn.Server(uvicorn.Config(build(store), host="127.0.0.1", port=0, log_level="warning"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    end = time.monotonic() + 30
    while not server.started and time.monotonic() < end:
        time.sleep(0.02)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/"
    server.should_exit = True
    thread.join(10)


@pytest.fixture(scope="module")
def tab() -> Iterator[Browser]:
    with browser() as opened:
        yield opened


@pytest.fixture
def page(tab: Browser, address: str, store: PreviewStore) -> Browser:
    store.state, store.nodes = "busy", 4
    tab.complaints.clear()
    tab.open(address)
    tab.wait_for(READY)
    return tab


def test_the_page_draws_everything_without_a_complaint_of_the_browser(page: Browser) -> None:
    text = page.run("document.body.innerText")
    for word in ("live", "airflow-scheduler-0:4711", "spot-large", "InsufficientInstanceCapacity", "6 phantom",
                 "nightly_etl", "warming", "it can never run", "provider failed"):  # fmt: skip
        assert word in text, word
    assert page.run("document.querySelectorAll('button.tile').length") == 7
    assert page.complaints == []


def test_a_hostile_dag_id_is_text_everywhere(page: Browser) -> None:
    page.wait_for(f"document.querySelector('#decisions').innerText.includes({HOSTILE!r})")
    assert page.run(f"document.body.innerText.split({HOSTILE!r}).length") > 4
    assert page.run("document.querySelectorAll('img').length") == 0
    page.run(f"[...document.querySelectorAll('.link')].find((each) => each.textContent === {HOSTILE!r}).click()")
    page.wait_for("document.querySelector('#why .sentences')")
    assert page.run("document.querySelector('#why-title').textContent") == HOSTILE
    assert page.run("document.querySelectorAll('img').length") == 0
    assert page.complaints == []


def test_a_node_tells_why_and_escape_gives_the_focus_back(page: Browser) -> None:
    page.run("tile = [...document.querySelectorAll('button.tile')][3]; tile.focus(); tile.click()")
    page.wait_for("document.querySelector('#why .sentences')")
    assert "sooner than a new node would pay" in page.run("document.querySelector('#why').innerText")
    assert page.run("document.activeElement.className") == "close"
    page.press("Escape")
    page.wait_for("document.querySelector('#why').hidden")
    assert page.run("document.activeElement === tile")


def test_the_keyboard_walks_over_tiles_and_shows_what_they_are(page: Browser) -> None:
    page.run("first = document.querySelectorAll('.tiles')[1].firstChild; first.focus()")
    page.press("ArrowRight")
    assert page.run("document.activeElement === first.nextSibling")
    assert page.run("document.querySelectorAll('.tiles')[1].querySelectorAll('[tabindex=\"0\"]').length") == 1
    page.wait_for("!document.querySelector('#tip').hidden")
    assert "3 task pods" in page.run("document.querySelector('#tip').innerText")
    page.press("Enter")
    page.wait_for("!document.querySelector('#why').hidden")


def test_the_pointer_shows_what_a_node_is(page: Browser) -> None:
    x, y = page.run("(b => [b.x + 5, b.y + 5])(document.querySelectorAll('button.tile')[4].getBoundingClientRect())")
    page.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
    page.wait_for("!document.querySelector('#tip').hidden")
    assert "booting" in page.run("document.querySelector('#tip').innerText")
    page.call("Input.dispatchMouseEvent", type="mouseMoved", x=2, y=2)
    page.wait_for("document.querySelector('#tip').hidden")


def test_decisions_are_filtered_by_text(page: Browser) -> None:
    page.wait_for("document.querySelectorAll('#decisions tbody tr').length === 5")
    page.run("box = document.querySelector('#decision-filter'); box.value = 'REFUSED spot'; "
             "box.dispatchEvent(new Event('input'))")  # fmt: skip
    assert page.run("document.querySelectorAll('#decisions tbody tr').length") == 1
    assert page.run("document.querySelector('#decision-count').textContent") == "1 of 5 decisions"
    page.run("box.value = 'no such word'; box.dispatchEvent(new Event('input'))")
    assert "No decision matches" in page.run("document.querySelector('#decisions').innerText")


def test_it_is_live_and_a_poll_keeps_the_elements(page: Browser, store: PreviewStore) -> None:
    page.run("kept = document.querySelectorAll('button.tile')[2]")
    store.nodes = 6
    page.wait_for("document.querySelectorAll('button.tile').length === 9")
    assert page.run("document.querySelectorAll('button.tile')[2] === kept")


@pytest.mark.parametrize(
    ("state", "words"),
    [
        ("no-controller", ["No controller has reported yet.", "airflow elastic controller"]),
        ("no-tables", ["tables are not in Airflow's database", "airflow db migrate"]),
        ("stale", ["Controller silent", "old"]),
        ("frozen", ["Frozen", "did you mean max_nodes", "observe: recommends only"]),
        ("empty", ["No node pools", "airflow elastic init", "No coming demand", "No reservation", "No decision yet"]),
        ("signed-out", ["Signed out", "Reload Airflow and sign in"]),
    ],
)
def test_every_state_says_what_it_is_and_what_to_do(
    tab: Browser, address: str, store: PreviewStore, state: str, words: list[str]
) -> None:
    store.state = state
    tab.complaints.clear()
    tab.open(address)
    for word in words:
        tab.wait_for(f"document.body.innerText.includes({word!r})")
    assert [each for each in tab.complaints if "401" not in each] == []


def test_the_theme_follows_the_system_and_airflows_choice(page: Browser, address: str) -> None:
    page.open(address, dark=True)
    page.wait_for("document.documentElement.dataset.theme === 'dark'")
    page.run("localStorage.setItem('theme', 'light')")
    page.open(address, dark=True)
    page.wait_for("document.documentElement.dataset.theme === 'light'")
    page.run("localStorage.clear()")


def test_a_thousand_nodes_are_drawn_and_updated_by_difference(page: Browser, address: str, store: PreviewStore) -> None:
    store.nodes = 1000
    page.open(address)
    page.wait_for("document.querySelectorAll('button.tile').length >= 1003")
    # A poll on an unchanged set of nodes adds, removes and rewrites no tile.
    page.run("changes = 0; new MutationObserver((all) => { changes += all.length; }).observe("
             "document.querySelector('#node-pools'), {childList: true, subtree: true, attributes: true})")  # fmt: skip
    before = page.run("document.querySelector('#coming-runs').innerText")
    page.wait_for(f"document.querySelector('#coming-runs').innerText !== {before!r}")
    assert page.run("changes") < 20


def test_beyond_the_planners_window_the_runs_needs_are_summed(page: Browser) -> None:
    steps = page.run("""(async () => {
        const { demandOf } = await import('./static/js/timeline.js');
        const pool = { name: 'p', forecast: [[0, 3]], boot_seconds_q90: 60, min_nodes: 0, max_nodes: 5 };
        const run = (node_pool, nodes, needed_at, until_at) => ({ node_pool, nodes, needed_at, until_at });
        const runs = [run('p', 3, 0, 100), run('p', 2, 200, 400), run('p', 4, 300, 350), run('q', 9, 0, 900)];
        return demandOf(pool, runs, 0);
    })()""")
    assert steps["sureUntil"] == 60
    assert steps["steps"] == [[0, 3], [100, 0], [200, 2], [300, 5], [350, 2], [400, 0]]


def test_each_node_says_in_words_why_it_is_up(page: Browser) -> None:
    words = page.run("[...document.querySelectorAll('.stays li')].map((each) => each.innerText).join('\\n')")
    assert "elastic-0001 · usable · runs 3 task pods; stays because nightly_etl needs it in" in words
    assert "fixed-1 · usable · runs 4 task pods: 1 of billing_daily.task_1" in words
    assert "elastic-0002 · booting · NotReady: it boots" in words


def test_many_nodes_are_folded_until_the_keyboard_opens_them(page: Browser, store: PreviewStore) -> None:
    store.nodes = 40
    page.wait_for("document.querySelectorAll('button.tile').length > 40")
    page.run("stays = document.querySelectorAll('.stays')[1]; stays.firstChild.focus()")
    assert page.run("stays.open") is False
    page.press("Enter")
    page.wait_for("stays.open && stays.querySelectorAll('li').length === 40")
    assert page.complaints == []
