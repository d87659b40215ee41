import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { readFile } from "node:fs/promises";
import { extname, join, normalize } from "node:path";

export interface RouteOptions {
  method?: "GET" | "POST" | "DELETE";
  cacheSeconds?: number;
}

type RouteHandler = (req: IncomingMessage, res: ServerResponse, params: Record<string, string>) => Promise<void>;

interface Route {
  pattern: RegExp;
  names: string[];
  handler: RouteHandler;
  options: Required<RouteOptions>;
}

const contentTypes: Record<string, string> = {
  ".html": "text/html; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".svg": "image/svg+xml",
};

export class Router {
  private readonly routes: Route[] = [];

  constructor(private readonly publicFolder: string) {}

  add(path: string, handler: RouteHandler, options: RouteOptions = {}): this {
    const names: string[] = [];
    const source = path.replace(/:([a-z]+)/gi, (_match, name: string) => {
      names.push(name);
      return "([^/]+)";
    });
    this.routes.push({
      pattern: new RegExp(`^${source}$`),
      names,
      handler,
      options: { method: options.method ?? "GET", cacheSeconds: options.cacheSeconds ?? 0 },
    });
    return this;
  }

  async handle(req: IncomingMessage, res: ServerResponse): Promise<void> {
    const url = new URL(req.url ?? "/", "http://localhost");
    for (const route of this.routes) {
      const match = route.pattern.exec(url.pathname);
      if (!match || route.options.method !== req.method) continue;
      const params = Object.fromEntries(route.names.map((name, i) => [name, decodeURIComponent(match[i + 1])]));
      if (route.options.cacheSeconds > 0) {
        res.setHeader("Cache-Control", `public, max-age=${route.options.cacheSeconds}`);
      }
      return route.handler(req, res, params);
    }
    await this.serveFile(url.pathname, res);
  }

  private async serveFile(pathname: string, res: ServerResponse): Promise<void> {
    const file = join(this.publicFolder, normalize(pathname === "/" ? "/index.html" : pathname));
    if (!file.startsWith(this.publicFolder)) {
      res.writeHead(403).end();
      return;
    }
    try {
      const body = await readFile(file);
      res.writeHead(200, { "Content-Type": contentTypes[extname(file)] ?? "application/octet-stream" });
      res.end(body);
    } catch {
      res.writeHead(404, { "Content-Type": "application/json" });
      res.end(JSON.stringify({ error: "not_found", path: pathname }));
    }
  }
}

export const listen = (router: Router, port = 3000) =>
  createServer((req, res) => void router.handle(req, res).catch(() => res.writeHead(500).end())).listen(port);
