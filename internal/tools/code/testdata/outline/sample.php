<?php
namespace App;

# class Commented {
abstract class Store extends Base implements Shape
{
    const LIMIT = 5;
    public function __construct(private int $limit) {}

    public static function load(string $key): ?Store
    {
        $f = function () { return "}"; };
        return null;
    }
}

interface Shape { public function area(): float; }
trait Named {}
enum Color: string { case Red = 'r'; }
function helper() { return 1; }
