// Builds what browsers load: `npm ci --ignore-scripts && npm run build`, which the Makefile and the wheel's build both do.
import { build } from "esbuild";

await build({
  entryPoints: { app: "src/app.ts", graph: "src/graph.ts", style: "style/style.css" },
  outdir: "../src/mutirao/server/page/asset",
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  legalComments: "none",
  logLevel: "warning",
});
