// Writes service/web/static/vendor: the style sheet compiled from Bootstrap's Sass, the minified scripts, the licences,
// and manifest.json with the version, licence and digest of each. Run by `make vendor`, after `npm ci`.
import { createHash } from "node:crypto";
import { copyFileSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { compile } from "sass";

const HERE = dirname(fileURLToPath(import.meta.url));
const MODULES = join(HERE, "node_modules");
const TARGET = join(HERE, "..", "..", "service", "web", "static", "vendor");
// Each package: what is taken from it, as source and name in the folder; null: made by the Sass compiler below.
const PACKAGES = {
  "bootstrap": { "bootstrap.min.css": null, "bootstrap.LICENSE.txt": "LICENSE" },
  "htmx.org": { "htmx.min.js": "dist/htmx.min.js", "htmx.LICENSE.txt": "LICENSE" },
  "uplot": {
    "uplot.min.js": "dist/uPlot.iife.min.js", "uplot.min.css": "dist/uPlot.min.css", "uplot.LICENSE.txt": "LICENSE",
  },
};

const lock = JSON.parse(readFileSync(join(HERE, "package-lock.json"), "utf8")).packages;
rmSync(TARGET, { recursive: true, force: true });
mkdirSync(TARGET, { recursive: true });
const css = compile(join(HERE, "kit.scss"), {
  style: "compressed",
  loadPaths: [MODULES],
  quietDeps: true,
  silenceDeprecations: ["import", "global-builtin", "color-functions", "if-function"],
}).css;
const bootstrap = lock["node_modules/bootstrap"];
writeFileSync(join(TARGET, "bootstrap.min.css"), `/*! Bootstrap v${bootstrap.version}, compiled by \`make vendor\`; MIT licence */\n${css}\n`);

const manifest = [];
for (const [name, files] of Object.entries(PACKAGES)) {
  const { version, license, integrity } = lock[`node_modules/${name}`];
  for (const [file, source] of Object.entries(files)) if (source) copyFileSync(join(MODULES, name, source), join(TARGET, file));
  const digests = Object.fromEntries(Object.keys(files).map((file) =>
    [file, createHash("sha256").update(readFileSync(join(TARGET, file))).digest("hex")]));
  manifest.push({ name, version, license, integrity, files: digests });
}
writeFileSync(join(TARGET, "manifest.json"), `${JSON.stringify(manifest, null, 1)}\n`);
for (const file of readdirSync(TARGET)) console.log(file);
