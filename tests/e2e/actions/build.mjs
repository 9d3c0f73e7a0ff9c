// Bundles each action into one folder that a runner can load without node_modules.
// Usage: node build.mjs OUT

import { copyFile, mkdir } from "node:fs/promises";
import { join } from "node:path";

import { build } from "esbuild";

const out = process.argv[2];

for (const action of ["upload-artifact", "download-artifact"]) {
  await mkdir(join(out, action), { recursive: true });
  await copyFile(join(action, "action.yml"), join(out, action, "action.yml"));
  await build({
    entryPoints: [join(action, "main.mjs")],
    outfile: join(out, action, "bundle.cjs"),
    bundle: true,
    platform: "node",
    format: "cjs",
    logLevel: "warning",
    // Some dependencies ask for their own address, which this format does not have.
    define: { "import.meta.url": "bundleAddress" },
    banner: { js: "const bundleAddress = require('node:url').pathToFileURL(__filename).href;" },
  });
}
