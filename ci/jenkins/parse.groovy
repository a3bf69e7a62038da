// SPDX-License-Identifier: Apache-2.0
//
// Prints, as JSON, the syntax trees that Groovy's own parser makes of the files named as arguments:
// a list with, per file, {file, tree} or {file, errors}. Nothing of them is run, and no name is
// resolved; what the trees mean is for model.py to say. Every node has a kind and a line.

import groovy.json.JsonOutput
import org.codehaus.groovy.ast.ASTNode
import org.codehaus.groovy.ast.expr.*
import org.codehaus.groovy.ast.stmt.*
import org.codehaus.groovy.control.*
import org.codehaus.groovy.control.messages.SyntaxErrorMessage

class Tree {
    static Map node(ASTNode of, String kind, Map more) {
        [kind: kind, line: of.lineNumber] + more
    }

    static List statements(Statement statement) {
        statement instanceof BlockStatement ? statement.statements.collect { one(it) } : [one(statement)]
    }

    static Map one(Statement statement) {
        if (statement instanceof ExpressionStatement || statement instanceof ReturnStatement) {
            return expression(statement.expression)
        }
        node(statement, 'other', [what: statement.class.simpleName.replace('Statement', '').toLowerCase() + ' statement'])
    }

    static Map expression(Expression e) {
        switch (e) {
            case MethodCallExpression: return call(e)
            case ConstantExpression: return node(e, 'constant', [value: e.value])
            case GStringExpression:
                def parts = []
                e.strings.eachWithIndex { text, at ->
                    parts << text.value
                    if (at < e.values.size()) parts << expression(e.values[at])
                }
                return node(e, 'gstring', [parts: parts])
            case ClosureExpression:
                return node(e, 'closure', [body: statements(e.code), parameters: e.parameters?.length ?: 0])
            case VariableExpression: return node(e, 'variable', [name: e.name])
            case PropertyExpression:
                return node(e, 'property', [of: expression(e.objectExpression), name: e.propertyAsString])
            case ListExpression: return node(e, 'list', [items: e.expressions.collect { expression(it) }])
            case MapExpression: return node(e, 'map', [entries: entries(e)])
            case NotExpression: return node(e, 'not', [of: expression(e.expression)])
            case BooleanExpression: return expression(e.expression)
            case DeclarationExpression: return node(e, 'other', [what: 'declaration of a variable'])
            case BinaryExpression:
                return node(e, 'binary', [op: e.operation.text, left: expression(e.leftExpression),
                                          right: expression(e.rightExpression)])
        }
        node(e, 'other', [what: e.class.simpleName])
    }

    static List entries(MapExpression map) {
        map.mapEntryExpressions.collect { [expression(it.keyExpression), expression(it.valueExpression)] }
    }

    // name(positional..., key: value...) { block }; on an object, that object is 'of'.
    static Map call(MethodCallExpression e) {
        def positional = [], named = [], block = null
        for (argument in (e.arguments instanceof TupleExpression ? e.arguments.expressions : [e.arguments])) {
            if (argument instanceof MapExpression) {
                named += entries(argument)
            } else if (argument instanceof ClosureExpression && block == null) {
                block = expression(argument)
            } else {
                positional << expression(argument)
            }
        }
        node(e, 'call', [name: e.methodAsString, of: e.implicitThis ? null : expression(e.objectExpression),
                         positional: positional, named: named, block: block])
    }
}

def results = args.collect { path ->
    def unit = new CompilationUnit()
    unit.addSource(new File(path))
    try {
        unit.compile(Phases.CONVERSION)
        def module = unit.AST.modules[0]
        [file: path, tree: Tree.statements(module.statementBlock), methods: module.methods.collect { it.name }]
    } catch (MultipleCompilationErrorsException e) {
        [file: path, errors: e.errorCollector.errors.collect { error ->
            if (error instanceof SyntaxErrorMessage) {
                return [line: error.cause.line, text: error.cause.originalMessage]
            }
            def text = new StringWriter()
            error.write(new PrintWriter(text))
            [line: 0, text: text.toString().trim()]
        }]
    }
}
println JsonOutput.toJson(results)
