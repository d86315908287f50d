#!/usr/bin/env python3
"""Pictures of the sample pages, for the guide and to be looked at.

    REPORT_SAMPLES=/tmp/samples cargo test -p lastcall-report --test pages
    python3 docs/pictures.py /tmp/samples /tmp/pictures [--keep docs/src/pictures]

Needs Python's playwright and pillow, and Chromium (CHROMIUM names it; else `chromium` is looked for). Each page is taken in
light, dark, print and at a phone's width; --keep also writes the few that the guide shows, with fewer colours. It fails where
a page asks for anything else, is wider than its window, or where the keyboard does not come by every link and fold in order.
"""

import argparse
import asyncio
import os
import pathlib
import shutil
import sys

from PIL import Image
from playwright.async_api import async_playwright

PAGES = ["ready", "not-ready", "insufficient", "error", "empty", "many-days", "board/index", "fleet", "try"]
# name: colour scheme, medium, width, height
MODES = {
    "light": ("light", "screen", 1280, 900),
    "dark": ("dark", "screen", 1280, 900),
    "print": ("light", "print", 760, 1000),
    "phone": ("light", "screen", 390, 844),
}
# what the guide keeps: picture, page, mode, height (0: the whole page)
KEPT = [
    ("report-ready", "ready", "light", 0),
    ("report-not-ready", "not-ready", "light", 0),
    ("report-insufficient", "insufficient", "light", 1000),
    ("report-error", "error", "light", 700),
    ("report-empty", "empty", "light", 700),
    ("report-dark", "not-ready", "dark", 1400),
    ("report-print", "not-ready", "print", 1400),
    ("report-phone", "not-ready", "phone", 1700),
    ("report-fleet", "board/index", "light", 0),
    ("report-fleet-dark", "board/index", "dark", 0),
    ("report-fleet-phone", "board/index", "phone", 844),
]

STOPS = "a[href], summary, [tabindex]"


async def keyboard(page, name):
    """Tab comes by everything that can be reached, in the order of the document, and each stop shows where it is."""
    wanted = await page.evaluate(
        f"() => [...document.querySelectorAll('{STOPS}')].filter(e => e.checkVisibility()).length")
    seen = []
    await page.evaluate("() => { document.activeElement.blur(); window.scrollTo(0, 0); }")
    for _ in range(min(wanted, 400)):
        await page.keyboard.press("Tab")
        stop = await page.evaluate(
            f"""() => {{ const e = document.activeElement; const all = [...document.querySelectorAll('{STOPS}')];
                 const s = getComputedStyle(e); return [all.indexOf(e), s.outlineStyle !== 'none' && s.outlineWidth !== '0px', e.outerHTML.slice(0, 80)] }}""")
        seen.append(stop[0])
        if not stop[1]:
            yield f"{name}: no outline at {stop[2]}"
    if seen != sorted(set(seen)) or -1 in seen:
        yield f"{name}: the keyboard goes {seen}"


async def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("samples", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--keep", type=pathlib.Path)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    wrong = []
    async with async_playwright() as p:
        browser = await p.chromium.launch(
            executable_path=os.environ.get("CHROMIUM") or shutil.which("chromium"), args=["--no-sandbox"])
        for mode, (scheme, medium, width, height) in MODES.items():
            context = await browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
            page = await context.new_page()
            asked = []
            page.on("request", lambda request: asked.append(request.url))
            await page.emulate_media(media=medium, color_scheme=scheme)
            for name in PAGES:
                asked.clear()
                address = (args.samples / f"{name}.html").resolve().as_uri()
                await page.goto(address)
                if asked != [address]:
                    wrong.append(f"{name}: it asks for {asked}")
                wide = await page.evaluate("() => document.documentElement.scrollWidth")
                if wide > width:
                    wrong.append(f"{name} ({mode}): {wide} pixels wide in a window of {width}")
                if mode in ("light", "phone"):
                    wrong += [w async for w in keyboard(page, f"{name} ({mode})")]
                    await page.evaluate("() => { document.activeElement.blur(); window.scrollTo(0, 0); }")
                picture = args.out / f"{name.replace('/', '-')}-{mode}.png"
                await page.screenshot(path=picture, full_page=True)
                for kept, of, in_mode, cut in KEPT:
                    if args.keep and (of, in_mode) == (name, mode):
                        image = Image.open(picture).convert("RGB")
                        if cut:
                            image = image.crop((0, 0, image.width, min(cut, image.height)))
                        image.quantize(128, dither=Image.Dither.NONE).save(args.keep / f"{kept}.png", optimize=True)
            if mode == "print":
                for name in PAGES:
                    await page.goto((args.samples / f"{name}.html").resolve().as_uri())
                    await page.pdf(path=args.out / f"{name.replace('/', '-')}.pdf", format="A4",
                                   margin={side: "14mm" for side in ("top", "right", "bottom", "left")})
            await context.close()
        await browser.close()
    for line in wrong:
        print(line)
    print(f"{len(PAGES) * len(MODES)} pictures in {args.out}, {len(wrong)} findings")
    sys.exit(1 if wrong else 0)


asyncio.run(main())
